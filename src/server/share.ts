// How many requests are under way at once, in all and of one tenant: one that waits a lot leaves the others room.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";

export const requestsMaxDefault = 1000;

export type Share = {
  /** Throws `busy` when the tenant has as many under way as it may. */
  take<T>(tenant: string, run: () => Promise<T>): Promise<T>;
};

/** A tenant may have half of all: many of them together still fill the server, but no one of them does. */
export function createShare(requestsMax: number): Share {
  const eachMax = Math.ceil(requestsMax / 2);
  const underWay = new Map<string, number>();
  return {
    async take(tenant, run) {
      const count = underWay.get(tenant) ?? 0;
      if (count >= eachMax) {
        const why = `${count} requests of the tenant ${quote(tenant)} are under way: ask again in a moment`;
        throw new DaybookError("busy", why);
      }
      underWay.set(tenant, count + 1);
      try {
        return await run();
      } finally {
        const left = (underWay.get(tenant) ?? 1) - 1;
        if (left === 0) underWay.delete(tenant);
        else underWay.set(tenant, left);
      }
    },
  };
}
