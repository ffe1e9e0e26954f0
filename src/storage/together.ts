// Units that are asked for at the same time, each to be answered by itself, are one unit: one statement writes them all. Whoever asks
// while a unit is on its way is in the next one.
import type { Store, Tx } from "./store.ts";

type Waiting<Asked, Made> = Pick<PromiseWithResolvers<Made>, "resolve" | "reject"> & { readonly asked: Asked };

/** `write` answers all that it is given, in their order; at most `most` of them are a unit. */
export function together<Asked, Made>(
  write: (tx: Tx, all: readonly Asked[]) => Promise<readonly Made[]>,
  most: number,
): (store: Store, asked: Asked) => Promise<Made> {
  const waiting: Waiting<Asked, Made>[] = [];
  let underWay = false;

  async function writeNext(store: Store): Promise<void> {
    let group: Waiting<Asked, Made>[] | undefined;
    // Taken when the unit runs, and kept: a unit may run more than once.
    const unit = (tx: Tx): Promise<readonly Made[]> => {
      if (group === undefined) {
        group = waiting.splice(0, most);
        underWay = false;
        if (waiting.length > 0) begin(store);
      }
      const all = group.map(({ asked }) => asked);
      return write(tx, all);
    };
    try {
      const made = await store.write(unit, { by: "shared" });
      for (const [index, each] of (group ?? []).entries()) each.resolve(made[index] as Made);
    } catch (error) {
      // Refused before it ran, so nobody was taken: all who wait are told.
      if (group === undefined) underWay = false;
      for (const each of group ?? waiting.splice(0)) {
        // One that cannot be written must not fail its neighbours.
        if (group === undefined || group.length === 1) each.reject(error);
        else
          store
            .write((tx) => write(tx, [each.asked]), { by: "shared" })
            .then(([made]) => each.resolve(made as Made), each.reject);
      }
    }
  }

  function begin(store: Store): void {
    if (underWay) return;
    underWay = true;
    void writeNext(store);
  }

  return (store, asked) => {
    const { promise, resolve, reject } = Promise.withResolvers<Made>();
    waiting.push({ asked, resolve, reject });
    begin(store);
    return promise;
  };
}
