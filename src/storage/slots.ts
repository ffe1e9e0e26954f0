// A few places, and a line for whoever comes when all are taken: first come, first served.
export type Slots = { take(): Promise<number>; giveBack(slot: number): void };

export function createSlots(count: number): Slots {
  const free = Array.from({ length: count }, (_, index) => index);
  const inLine: ((slot: number) => void)[] = [];
  return {
    take: async () => free.pop() ?? new Promise<number>((resolve) => inLine.push(resolve)),
    giveBack(slot) {
      const next = inLine.shift();
      if (next === undefined) free.push(slot);
      else next(slot);
    },
  };
}
