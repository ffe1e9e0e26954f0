import type { Ports } from "../../src/jobs/kind.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";

/** Fires until nothing is due. A worker of the same book may hold a slot meanwhile; it is waited for as well. */
export async function fireAll(store: Store, ports: Ports = { kinds: {} }): Promise<void> {
  do {
    while (await store.write((tx) => fireDue(tx, ports))) continue;
  } while (
    (await store.read(sql`select seq from daybook_schedule where next_at <= ${store.clock.now()} limit 1`)).length > 0
  );
}
