// What a user asks about runs.
import { DaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { pinRun, unpinRun } from "./kept-run.ts";
import { listRuns, type RunFilter, type RunPage } from "./list-runs.ts";
import { logsOfRun, type LogLevel } from "./log.ts";
import { selectRuns, toRecord, type RunLog, type RunRecord, type RunRow } from "./run.ts";

export type Runs = {
  get(id: string): Promise<RunRecord>;
  /** What ended, the latest first.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", since: "1h" });
   *  ``` */
  list(filter?: RunFilter): Promise<RunPage>;
  logs(id: string): Promise<RunLog[]>;
  /** Retention and prune leave it, and its job if it has one, until it is unpinned.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", limit: 1 });
   *  for (const { id } of items) await book.runs.pin(id, { note: "the night the lights stayed on" });
   *  ``` */
  pin(id: string, options?: { readonly note?: string }): Promise<void>;
  /** False when it was not pinned. */
  unpin(id: string): Promise<boolean>;
};

type LogRow = { logged_at: number; level: LogLevel; message: string; fields: string | null };

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function openRuns(store: Store, tenant: string, seenBy: string | null = null): Runs {
  return {
    async get(id) {
      const [row] = await store.read<RunRow>(sql`${selectRuns} where run.tenant_id = ${tenant} and run.id = ${id}`);
      if (row === undefined) throw new DaybookError("not_found", `there is no ended run ${id}`, { details: { id } });
      return toRecord(row);
    },
    list: (filter = {}) => listRuns(store, tenant, filter, seenBy),
    async logs(id) {
      const rows = await store.readHeavy<LogRow>(logsOfRun(tenant, id));
      return rows.map(({ logged_at: at, level, message, fields }) => ({
        ...{ at, level, message },
        fields: fields === null ? null : (JSON.parse(fields) as unknown),
      }));
    },
    pin: (id, { note } = {}) => store.write((tx) => pinRun(tx, id, note ?? null), { tenant }),
    unpin: (id) => store.write((tx) => unpinRun(tx, id), { tenant }),
  };
}
