// The verbs of calls, on the book and in a transaction.
import { invalid } from "../core/error.ts";
import type { Store } from "../storage/store.ts";
import type { Within } from "../jobs/jobs.ts";
import type { Ports } from "../jobs/kind.ts";
import { refuseDestination } from "./client/destination.ts";
import { cancelCall, deleteCall, rescheduleCall, resendCall } from "./commands.ts";
import type { CancelledCall, ResendOptions } from "./commands.ts";
import { explainCall, findCall, listCalls } from "./read-calls.ts";
import type { CallDetails, CallExplanation, CallFilter, CallPage } from "./read-calls.ts";
import { shownUrl } from "./request/redact.ts";
import type { CallsRoom } from "./room.ts";
import { prepareCall, type PreparedCall, type SubmitOptions, type When, submitCall, type Submitted } from "./submit.ts";

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
  get(id: string): Promise<CallDetails>;
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
      const { idempotencyKey } = prepared;
      return within(
        (tx) => {
          if (sends) refuseAtOnce(room, tx.tenant, prepared);
          return submitCall(tx, room, prepared);
        },
        { shared: idempotencyKey === null },
      );
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
    `the destination ${shownUrl(new URL(url.origin))} is not allowed: calls go to public addresses, and to what ` +
      "open(…, { calls: { allow: [] } }) lists",
  );
}

export function callReads(store: Store, tenant: string): Omit<Calls, keyof CallVerbs> {
  return {
    get: (id) => findCall(store, tenant, id),
    list: (filter = {}) => listCalls(store, tenant, filter),
    explain: (id) => explainCall(store, tenant, id),
  };
}
