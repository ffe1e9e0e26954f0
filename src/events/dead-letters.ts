// What people do about dead letters.
import { checkCount } from "../core/count.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import type { DeadLetterStatus } from "./dead-letter.ts";
import { discardLetter, redriveLetter } from "./redrive.ts";
import { checkFilter, listLetters, readGroups, readLetter, whichLetters } from "./read-dead-letter.ts";
import type { DeadLetterGroup, DeadLetterPage, DeadLetterRecord, LetterFilter } from "./read-dead-letter.ts";

export type RedriveOptions = {
  /** Reads only, and says how many there are. */
  readonly dryRun?: boolean;
  /** How many per second are tried; default all at once. */
  readonly rate?: number;
};

export type DeadLetters = {
  get(id: string): Promise<DeadLetterRecord>;
  /** The newest first; those that have ended only if `status` asks for them. */
  list(filter?: LetterFilter & { status?: DeadLetterStatus; limit?: number; after?: string }): Promise<DeadLetterPage>;
  /** By listener and error, the most frequent first. */
  groups(): Promise<DeadLetterGroup[]>;
  /** Delivers the same event to the same listener once more. A letter that fails again stays the same letter. */
  redrive(id: string): Promise<{ readonly jobId: string }>;
  redriveAll(filter: LetterFilter, options?: RedriveOptions): Promise<{ readonly count: number }>;
  discard(id: string, reason: string): Promise<void>;
  discardAll(filter: LetterFilter, reason: string, options?: { dryRun?: boolean }): Promise<{ readonly count: number }>;
};

export function deadLetters(store: Store, tenant: string): DeadLetters {
  const write = <T>(unit: (tx: Tx) => Promise<T>): Promise<T> => store.write(unit, { tenant });
  return {
    get: (id) => readLetter(store, tenant, id),
    list: (filter = {}) => listLetters(store, tenant, filter),
    groups: () => readGroups(store, tenant),
    redrive: (id) => write((tx) => redriveLetter(tx, id)),
    async redriveAll(filter, options = {}) {
      refuseUnknown(options, ["dryRun", "rate"], "redriveAll");
      const perSecond = options.rate === undefined ? null : checkCount(options.rate, "rate", 1);
      // They wait for their time, so that whoever asks need not stay: the n-th begins n ÷ rate seconds from now.
      return each(store, tenant, filter, options.dryRun ?? false, (tx, id, place) =>
        redriveLetter(tx, id, perSecond === null ? 0 : Math.floor((place * 1000) / perSecond)),
      );
    },
    discard: (id, reason) => write((tx) => discardLetter(tx, id, reason)),
    discardAll: (filter, reason, { dryRun = false } = {}) =>
      each(store, tenant, filter, dryRun, (tx, id) => discardLetter(tx, id, reason)),
  };
}

// In slices of their own transactions: what somebody else has just taken up is passed by.
async function each(
  store: Store,
  tenant: string,
  filter: LetterFilter,
  dryRun: boolean,
  act: (tx: Tx, id: string, place: number) => Promise<unknown>,
): Promise<{ count: number }> {
  checkFilter(filter);
  const found = await store.readHeavy<{ id: string }>(
    sql`select letter.id from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
      join daybook_event event on event.seq = letter.event_seq
      where ${whichLetters(tenant, filter)} and letter.ended_at is null and letter.status = 'dead'
      order by letter.event_seq, letter.seq`,
  );
  if (dryRun) return { count: found.length };
  let count = 0;
  for (let from = 0; from < found.length; from += sliceMax) {
    const slice = found.slice(from, from + sliceMax);
    count += await store.write(
      async (tx) => {
        let done = 0;
        for (const [index, { id }] of slice.entries()) {
          const dead = await tx.get(sql`select seq from daybook_dead_letter
            where tenant_id = ${tenant} and id = ${id} and status = 'dead'`);
          if (dead === undefined) continue;
          await act(tx, id, from + index);
          done++;
        }
        return done;
      },
      { tenant },
    );
  }
  return { count };
}

const sliceMax = 100;
