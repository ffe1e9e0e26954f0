// What must hold for the registrations of apps; doctor asks.
import type { Check } from "../storage/checks.ts";
import { sql } from "../storage/sql.ts";

const whole = sql`registration.tenant_id || '/' || registration.app_key || '/' || registration.instance_index || '/'
  || registration.name`;

export const appChecks: readonly Check[] = [
  {
    promise: "T1",
    name: "what is registered belongs to an instance of its app",
    find: () => sql`select ${whole} as finding from daybook_registration registration left join daybook_app_instance app_instance
        on app_instance.tenant_id = registration.tenant_id and app_instance.app_key = registration.app_key
          and app_instance.instance_index = registration.instance_index
      where registration.retired_at is null and app_instance.seq is null`,
    advice: "set the app up again: what it registers no more is retired then",
  },
  {
    promise: "T1",
    name: "a schedule of an app is in the book as long as it is registered, and no longer",
    find: () => sql`select ${whole} as finding from daybook_registration registration left join daybook_schedule schedule
        on schedule.tenant_id = registration.tenant_id and schedule.name = ${whole} and schedule.removed_at is null
          and schedule.source = 'code'
      where registration.kind = 'schedule' and (registration.retired_at is null) <> (schedule.seq is not null)`,
    advice: "set the app up again; if it comes again, report it: both are written in one transaction",
  },
];
