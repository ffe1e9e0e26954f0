// The attempt is on disk before its socket opens, and only if the run is still ours: whatever happens then, the book knows
// that the request may have been sent.
import { DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { forShare, greatest } from "../../storage/word.ts";
import type { JobInfo } from "../../jobs/context.ts";
import { advise } from "../../jobs/advice.ts";
import type { CallRow } from "../call.ts";
import { tellCall, type OnCallFact } from "../facts.ts";

export type Shown = { readonly url: string; readonly headers: string; readonly body: string | null };

export type Sendable = Pick<
  CallRow,
  | "tenant_id"
  | "id"
  | "name"
  | "method"
  | "host"
  | "correlation_id"
  | "due_at"
  | "request"
  | "content"
  | "key_id"
  | "policy"
> &
  Pick<CallRow, "send_key">;

export async function beginAttempt(
  store: Store,
  job: JobInfo,
  call: Sendable,
  { shown, onFact }: { readonly shown: Shown; readonly onFact: OnCallFact | undefined },
): Promise<void> {
  const { tenant_id: tenant, id } = call;
  await store.write(
    async (tx) => {
      const begun = await tx.run(sql`insert into call_attempt (tenant_id, call_id, id, number, started_at, method, url,
          request_headers, request_body)
        select job.tenant_id, ${id}, job.run_id, (select coalesce(max(number), 0) + 1 from call_attempt
            where tenant_id = ${tenant} and call_id = ${id}), ${tx.now}, ${call.method}, ${shown.url}, ${shown.headers},
          ${shown.body}
        from job where job.tenant_id = ${tenant} and job.id = ${job.id} and job.run_id = ${job.runId}
          and job.status = 'running' ${forShare}`);
      if (begun === 0) throw new DaybookError("conflict", `call ${id} is no longer this process's to send`);
      const started = await tx.run(sql`update call set status = 'running',
          started_at = ${greatest}(${tx.now}, submitted_at, due_at)
        where tenant_id = ${tenant} and id = ${id} and status = 'scheduled'`);
      if (started === 1) return tellCall(tx, onFact, "call.started", call);
      const now = await tx.get<Pick<CallRow, "status">>(
        sql`select status from call where tenant_id = ${tenant} and id = ${id}`,
      );
      if (now?.status !== "running") throw hasEnded(id, now?.status ?? "gone");
    },
    { by: "shared", tenant },
  );
}

// Somebody continued its job by hand.
function hasEnded(id: string, status: string): Error {
  const error = new DaybookError("conflict", `call ${id} is ${status}: send it again with resend`);
  return advise(error, { again: false });
}
