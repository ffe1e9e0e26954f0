// The verbs on the book, as its user calls them: outside of any transaction, each with its name and its deadline.
import { calledFrom } from "../core/caller.ts";
import { limits } from "../core/limits.ts";
import { readAs } from "../storage/reading.ts";
import type { Store } from "../storage/store.ts";
import { refuseVerb } from "../storage/unit.ts";

/** Reading through the book inside `write` would show what was there before it, which is hardly ever meant, so the verbs refuse it.
 *  What they read is read in their name, as one of this tenant's reads. */
export function outsideUnits<Verbs extends object>({ store, tenant }: Of, what: string, verbs: Verbs): Verbs {
  const entries = Object.entries(verbs) as [string, (...args: unknown[]) => unknown][];
  const msMax = reports.has(what) ? limits.reportMs : limits.readMs;
  return Object.fromEntries(
    entries.map(([name, call]) => {
      const verb = `book.${what}.${name}`;
      const checked = async (...args: unknown[]): Promise<unknown> => {
        try {
          refuseVerb(verb, store);
          return await readAs({ tenant, verb, msMax }, () => call(...args));
        } catch (error) {
          throw calledFrom(error);
        }
      };
      return [name, checked];
    }),
  ) as Verbs;
}

export type Of = { readonly store: Store; readonly tenant: string };

/** Whose verbs sum up a stretch of time: they look at more than a list does. */
const reports: ReadonlySet<string> = new Set(["telemetry", "runs"]);
