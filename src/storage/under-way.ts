// What was begun and has not ended. Closing waits for it, so that whoever asked is answered.
export type UnderWay = {
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves once nothing is under way any more, what began in the meantime included. */
  settled(): Promise<void>;
  /** Resolves once what is under way now has ended. */
  begunEnded(): Promise<unknown>;
};

export function createUnderWay(): UnderWay {
  const open = new Set<Promise<unknown>>();
  return {
    track(work) {
      open.add(work);
      const forget = (): void => void open.delete(work);
      work.then(forget, forget);
      return work;
    },
    begunEnded: () => Promise.allSettled([...open]),
    async settled() {
      while (open.size > 0) await Promise.allSettled(open);
    },
  };
}
