// Which names of an instance have ever run.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { hasHistory } from "../telemetry/run.ts";
import type { InstanceIdentity } from "./identity.ts";

/** Of the names that the book knows and a setup registered no more, those with runs. Usually there are none to ask for. */
export async function namesWithHistory(
  store: Store,
  { tenant, app, instance }: InstanceIdentity,
  registered: ReadonlySet<string>,
): Promise<Set<string>> {
  const known = await store.read<{ name: string }>(sql`select name from daybook_registration
    where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance}`);
  const found = new Set<string>();
  for (const { name } of known) {
    if (registered.has(name)) continue;
    if (await hasHistory(store, tenant, { app, instance, registration: name })) found.add(name);
  }
  return found;
}
