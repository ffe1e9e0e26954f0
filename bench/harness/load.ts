// A load is something done over and over for a moment. It says how often it was done; the harness holds the watch.

export type Load = (slice: Slice) => number | Promise<number>;

export type Slice = {
  /** True once the time of this slice is up. Whatever is under way is finished and counted. */
  over(): boolean;
};

/** Runs the load for about `ms` and returns how often per second it was done, down to its last operation. */
export async function measure(load: Load, ms: number): Promise<number> {
  const begun = performance.now();
  const done = await load(sliceUntil(begun + ms));
  return (done * 1000) / (performance.now() - begun);
}

// Reading the clock costs a tenth of the fastest operation measured here, so fast loads are asked the time less often.
function sliceUntil(end: number): Slice {
  let lookedAt = performance.now();
  let stride = 1;
  let left = stride;
  let over = false;
  return {
    over() {
      if (over || --left > 0) return over;
      const now = performance.now();
      stride = now - lookedAt < 1 ? Math.min(stride * 2, 64) : 1;
      lookedAt = now;
      left = stride;
      return (over = now >= end);
    },
  };
}

/** `callers` callers, each of which asks again as soon as it is answered. */
export function inFlight(callers: number, call: () => Promise<unknown>): Load {
  return async (slice) => {
    let done = 0;
    const caller = async (): Promise<void> => {
      while (!slice.over()) {
        await call();
        done++;
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    return done;
  };
}

export function oneByOne(call: () => Promise<unknown>): Load {
  return inFlight(1, call);
}

/** A load without promises: what a bare script does. `call` says how many operations it stands for. */
export function inLoop(call: () => number): Load {
  return (slice) => {
    let done = 0;
    while (!slice.over()) done += call();
    return done;
  };
}
