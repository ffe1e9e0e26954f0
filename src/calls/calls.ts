// The verbs of calls, on the book and in a transaction.
import { conflict, invalid, isDaybookError, type DaybookError } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { forShare } from "../storage/word.ts";
import type { Within } from "../jobs/jobs.ts";
import type { Ports } from "../jobs/kind.ts";
import { rescheduleJob } from "../jobs/line/edit.ts";
import { cancelJob } from "../jobs/settle/cancel.ts";
import { callKind, noSuchCall, type CallPolicy, type CallRow, type CallStatus } from "./call.ts";
import { refuseDestination } from "./client/destination.ts";
import { explainCall, getCall, listCalls } from "./read-calls.ts";
import type { CallDetails, CallExplanation, CallFilter, CallPage, GetCallOptions } from "./read-calls.ts";
import { openRequest, type KeptRequest } from "./request/kept.ts";
import type { CallsRoom } from "./room.ts";
import { checkWhen, prepareCall, submitCall } from "./submit.ts";
import type { PreparedCall, SubmitOptions, Submitted, When } from "./submit.ts";

/** Verbs that write. In a transaction they are part of it; on the book each commits by itself. */
export type CallVerbs = {
  /** Makes a call: an HTTP request that is sent once the transaction has committed and the call is due.
   *
   *  ```ts
   *  await tx.calls.submit({ method: "POST", url: "https://stock.example/reserve", json: { orderId: "o-17" } });
   *  ``` */
  submit(options: SubmitOptions): Promise<Submitted>;
  /** A call that has not started is never sent; one that is being sent is aborted. */
  cancel(id: string): Promise<CancelledCall>;
  /** Sends the request of a call that has ended once more, as a new call with the same Idempotency-Key. */
  resend(id: string, options?: ResendOptions): Promise<Submitted>;
  /** Changes the due time of a call that has not started. */
  reschedule(id: string, when: When): Promise<{ readonly id: string; readonly dueAt: number }>;
  /** Removes a call that has ended, with its tags and its attempts. */
  delete(id: string): Promise<void>;
};

export type Calls = CallVerbs & {
  /** A call with its attempts. `reveal`: with what was sent and what came back, for who may see secrets.
   *
   *  ```ts
   *  const { id } = await book.calls.submit({ url: "https://stock.example/orders/17" });
   *  console.log((await book.calls.get(id)).request.url, (await book.calls.get(id, { reveal: true })).request.url);
   *  ``` */
  get(id: string, options?: GetCallOptions): Promise<CallDetails>;
  /** The newest first.
   *
   *  ```ts
   *  const { items } = await book.calls.list({ status: "failed", tags: { any: ["billing", "eu"] } });
   *  ``` */
  list(filter?: CallFilter): Promise<CallPage>;
  /** Why a call has not been sent, or what became of it. */
  explain(id: string): Promise<CallExplanation>;
};

export type CallsParts = {
  readonly room: CallsRoom;
  readonly ports: Ports;
  /** This process also sends calls, so it refuses at submit what it would refuse to send. */
  readonly sends: boolean;
};

export function callVerbs({ room, ports, sends }: CallsParts, within: Within): CallVerbs {
  return {
    async submit(options) {
      const prepared = prepareCall(options);
      const submit = (tx: Tx): Promise<Submitted> => {
        if (sends) refuseAtOnce(room, tx.tenant, prepared);
        return submitCall(tx, room, prepared);
      };
      return within(submit, { shared: prepared.idempotencyKey === null });
    },
    cancel: (id) => within((tx) => cancelCall(tx, ports, id)),
    resend: (id, options = {}) => within((tx) => resendCall(tx, room, id, options)),
    reschedule: (id, when) => within((tx) => rescheduleCall(tx, id, when)),
    delete: (id) => within((tx) => deleteCall(tx, id)),
  };
}

// A literal address and the port can be checked now; the addresses of a name are checked when the call is sent.
function refuseAtOnce({ settings }: CallsRoom, tenant: string, { content }: PreparedCall): void {
  const url = new URL(content.url);
  if (refuseDestination(url, settings.allowFor(tenant), settings.ports) === undefined) return;
  throw invalid(
    `the destination ${url.origin} is not allowed: calls go to public addresses, and to what ` +
      "open(…, { calls: { allow: [] } }) lists",
  );
}

export function callReads({ room }: CallsParts, store: Store, tenant: string): Omit<Calls, keyof CallVerbs> {
  return {
    get: (id, options = {}) => getCall(store, room.settings.keys, { tenant, id }, options),
    list: (filter = {}) => listCalls(store, tenant, filter),
    explain: (id) => explainCall(store, tenant, id),
  };
}

// Commands on an existing call. Each locks the call's job first, as does every transaction that ends the job, so two of them
// never deadlock.

export type CancelledCall = { readonly id: string; readonly status: "cancelled" | "cancelling" };

const triesMax = 5;

async function cancelCall(tx: Tx, ports: Ports, id: string): Promise<CancelledCall> {
  for (let tries = 0; tries < triesMax; tries++) {
    const job = await openJobOf(tx, id);
    if (job === undefined) break;
    try {
      return { id, status: (await cancelJob(tx, ports, job)).status };
    } catch (error) {
      // The job has just ended; a retry may have taken its place.
      if (!isDaybookError(error) || error.code !== "conflict") throw error;
    }
  }
  throw await refusal(tx, id, "cancelled");
}

async function rescheduleCall(tx: Tx, id: string, when: When): Promise<{ id: string; dueAt: number }> {
  refuseUnknown(when, ["at", "in"], "reschedule");
  if (when.at === undefined && when.in === undefined) throw invalid('reschedule needs "at" or "in"');
  const { at, delayMs } = checkWhen(when);
  const dueAt = at ?? tx.now + delayMs;
  const job = await openJobOf(tx, id);
  const moved =
    job !== undefined &&
    (await rescheduleJob(tx, { tenant: tx.tenant, id: job }, dueAt, { delayMs: at === null ? delayMs : null }));
  const changed = moved
    ? await tx.run(sql`update daybook_call set due_at = ${dueAt}
        where tenant_id = ${tx.tenant} and id = ${id} and status = 'scheduled'`)
    : 0;
  if (changed === 0) throw await refusal(tx, id, "rescheduled");
  return { id, dueAt };
}

/** Prune removes its jobs later. */
async function deleteCall(tx: Tx, id: string): Promise<void> {
  const gone = await tx.run(
    sql`delete from daybook_call where tenant_id = ${tx.tenant} and id = ${id} and finished_at is not null`,
  );
  if (gone === 0) throw await refusal(tx, id, "deleted");
}

export type ResendOptions = When & {
  /** True: sends a new key, for a receiver that repeats its first answer to a known key. */
  readonly newKey?: boolean;
};

type Sent = KeptRequest &
  Pick<CallRow, "name" | "status" | "host" | "policy" | "correlation_id" | "send_key" | "finished_at">;

async function resendCall(tx: Tx, room: CallsRoom, id: string, options: ResendOptions): Promise<Submitted> {
  refuseUnknown(options, ["at", "in", "newKey"], "resend");
  const sent = await tx.get<Sent>(sql`select id, tenant_id, name, status, host, content, key_id, policy, correlation_id,
      send_key, finished_at from daybook_call where tenant_id = ${tx.tenant} and id = ${id} ${forShare}`);
  if (sent === undefined || sent.finished_at === null) throw await refusal(tx, id, "sent again");
  const tags = await tx.all<{ tag: string }>(
    sql`select tag from daybook_call_tag where tenant_id = ${tx.tenant} and call_id = ${id} order by tag`,
  );
  const content = openRequest(room.settings.keys, sent);
  if (content === undefined) throw conflict(`call ${id} ${hasLeft}: submit it anew`, { id });
  const prepared = {
    content,
    host: sent.host,
    name: sent.name,
    ...checkWhen(options),
    tags: tags.map(({ tag }) => tag),
    idempotencyKey: null,
    correlationId: sent.correlation_id,
    policy: JSON.parse(sent.policy) as CallPolicy,
    cause: undefined,
  };
  return submitCall(tx, room, prepared, { resendOf: id, sendKey: options.newKey === true ? null : sent.send_key });
}

const hasLeft =
  "might have a secret and was submitted without a key (DAYBOOK_KEY), so its request left the book when it ended";

async function openJobOf(tx: Tx, id: string): Promise<string | undefined> {
  const job = await tx.get<{ id: string }>(sql`select job.id
    from daybook_call call cross join daybook_line line cross join daybook_job job
    where call.tenant_id = ${tx.tenant} and call.id = ${id}
      and line.kind = ${callKind} and line.kind_seq = call.seq and line.kind is not null and job.seq = line.seq`);
  return job?.id;
}

async function refusal(tx: Tx, id: string, verb: string): Promise<DaybookError> {
  const row = await tx.get<{ status: CallStatus }>(
    sql`select status from daybook_call where tenant_id = ${tx.tenant} and id = ${id} ${forShare}`,
  );
  if (row === undefined) return noSuchCall(id);
  return conflict(`call ${id} is ${row.status} and cannot be ${verb}`, { id, status: row.status });
}
