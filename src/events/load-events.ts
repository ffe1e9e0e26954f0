// A delivery names its event and does not hold it. Deliveries that start together ask for theirs together: one read for
// all of them, which is far cheaper than a copy of the payload in every job.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { eventColumns, type EventRow } from "./event.ts";

type Asked = {
  readonly tenant: string;
  readonly id: string;
  readonly resolve: (row: EventRow | undefined) => void;
  readonly reject: (error: unknown) => void;
};

const waiting = new WeakMap<Store, Asked[]>();

/** The event of this id; undefined when it is gone. */
export function loadEvent(store: Store, tenant: string, id: string): Promise<EventRow | undefined> {
  return new Promise((resolve, reject) => {
    const asked = { tenant, id, resolve, reject };
    const line = waiting.get(store);
    if (line !== undefined) return void line.push(asked);
    waiting.set(store, [asked]);
    queueMicrotask(() => void answerAll(store));
  });
}

async function answerAll(store: Store): Promise<void> {
  const line = waiting.get(store) ?? [];
  waiting.delete(store);
  for (const [tenant, asked] of Map.groupBy(line, (each) => each.tenant)) {
    try {
      const ids = [...new Set(asked.map((each) => each.id))];
      const rows = await store.read<EventRow>(
        sql`select ${eventColumns} from daybook_event where tenant_id = ${tenant} and id ${anyOf("text", ids)}`,
      );
      const byId = new Map(rows.map((row) => [row.id, row]));
      for (const { id, resolve } of asked) resolve(byId.get(id));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}
