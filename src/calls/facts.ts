// Facts about calls, stated to the rooms above in the transaction in which they become true.
import { defineFact } from "../core/fact.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { CallOutcome, CallRow } from "./call.ts";

export type CallFact = {
  readonly topic: `call.${"submitted" | "started" | "succeeded" | "failed" | "cancelled"}`;
  readonly tenant: string;
  readonly payload: {
    readonly id: string;
    readonly name: string;
    readonly method: string;
    readonly host: string;
    readonly correlationId: string;
    readonly dueAt: number;
    readonly outcome: CallOutcome | null;
    /** The beginning of the answer's body. */
    readonly snippet: string | null;
  };
};

/** Where facts about calls go: the room of events, wired at the front door. */
export type CallAnnounce = {
  /** Whether any tenant has a listener for one of these topics. */
  hears(tx: Tx, topics: readonly CallFact["topic"][]): Awaitable<boolean>;
  onFact(tx: Tx, fact: CallFact): Awaitable<void>;
};

type Told = Pick<CallRow, "tenant_id" | "id" | "name" | "method" | "host" | "correlation_id" | "due_at">;

export type ToTell = {
  readonly topic: CallFact["topic"];
  readonly row: Told;
  readonly end?: { readonly outcome: CallOutcome; readonly snippet: string | null };
};

/** Announces facts inside the transaction, and states them to subscribers of `callChanged` once it has committed. */
export async function tellCalls(tx: Tx, announce: CallAnnounce | undefined, told: readonly ToTell[]): Promise<void> {
  if (told.length === 0) return;
  const topics = [...new Set(told.map(({ topic }) => topic))];
  const kept = announce !== undefined && (await announce.hears(tx, topics)) ? announce : undefined;
  if (kept === undefined && !callChanged.heard) return;
  for (const each of told) {
    const fact = toFact(each);
    await kept?.onFact(tx, fact);
    if (callChanged.heard) tx.afterCommit(() => callChanged.state(fact));
  }
}

function toFact({ topic, row, end }: ToTell): CallFact {
  return {
    topic,
    tenant: row.tenant_id,
    payload: {
      id: row.id,
      name: row.name,
      method: row.method,
      host: row.host,
      correlationId: row.correlation_id,
      dueAt: row.due_at,
      outcome: end?.outcome ?? null,
      snippet: end?.snippet ?? null,
    },
  };
}

/** A call was submitted, started or ended, and that is on disk. */
export const callChanged = defineFact<CallFact>("call.changed");
/** A destination was refused. The reason is for the operator; a tenant learns only that it was refused. */
export const callRefused = defineFact<{ tenant: string; id: string; host: string; reason: string }>("call.refused");
