// Why a call has not been sent, or what became of it.
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { explainJob, type Explanation } from "../jobs/explain.ts";
import type { CallStatus } from "./call.ts";
import { findCall } from "./list.ts";

export type CallExplanation = Omit<Explanation, "status"> & { readonly status: CallStatus };

export async function explainCall(store: Store, tenant: string, id: string): Promise<CallExplanation> {
  const { status, jobId, host, outcome } = await findCall(store, tenant, id);
  if (jobId === null) {
    const how = outcome?.error ?? `it was answered with status ${outcome?.responseStatus ?? "?"}`;
    return { id, status, reason: status, because: [`It is ${status}: ${how}.`] };
  }
  const job = await explainJob(store, tenant, jobId);
  const [known] = await store.read<{ failures: number; probe_at: number | null; probes: number }>(
    sql`select call_host.failures, call_host.probe_at, case when call_host.probe_call_seq = call.seq then 1 else 0 end
        as probes
      from daybook_call call cross join daybook_call_host call_host where call.tenant_id = ${tenant} and call.id = ${id}
        and call_host.tenant_id = ${tenant} and call_host.host = ${host}`,
  );
  const probes = known?.probes === 1 && job.reason === "time";
  if (job.reason !== "order" && !probes) return { id, status, reason: job.reason, because: job.because };
  const who = probes ? "This one" : "One of them";
  const when = known?.probe_at == null ? "" : ` ${who} tries it from ${isoTime(known.probe_at)} on.`;
  const because =
    known === undefined || known.failures === 0
      ? `The host ${host} answers again, and its calls follow a few at a time.`
      : `The host ${host} does not answer, ${known.failures} times in a row, so its calls wait.${when}`;
  return { id, status, reason: "host", because: [because] };
}
