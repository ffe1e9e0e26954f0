// Listen: one run of a delivery, from its event to the listener's function. Workers run it like any job.
import { currentCause, withCause } from "../core/cause.ts";
import { invalid, notFound, type DaybookError } from "../core/error.ts";
import { advise } from "../core/retry.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { RunContext } from "../jobs/run/run.ts";
import { defineJob, type AnyJob } from "../jobs/define.ts";
import type { Engine } from "../jobs/engine.ts";
import { catchUp, type CatchUpParams } from "./catch-up.ts";
import { unfitPayload, validatePayload, type AnyEvent, type AnyListener } from "./define.ts";
import { toInfo, toLiveEvent, eventColumns, type EventInfo, type EventRow } from "./event.ts";
import { deliveryName } from "./listener.ts";
import { ask, type Predicate } from "./live/where.ts";
import type { DeliveryParams } from "./publish.ts";

/** What a listener's context has besides a job's. */
export type ListenerParts = { readonly event: EventInfo };

/** The job that a worker runs for this listener. */
export function listenerJob(listener: AnyListener): AnyJob {
  const { queue, losses, attempts, name } = listener;
  const job = defineJob(deliveryName(name), { queue, losses, attempts, run: () => undefined });
  return {
    ...job,
    builtIn: {
      byHand: () => {
        throw notByHand(name);
      },
      run: (engine, given, context) => {
        // An operator may have edited them into something that is no object.
        const params = Object(given) as CatchUpParams | DeliveryParams;
        return "catchUp" in params ? catchUp(engine, params, context) : listen(engine, listener, params, context);
      },
    },
  };
}

async function listen(
  engine: Engine,
  listener: AnyListener,
  { event: id }: DeliveryParams,
  context: RunContext,
): Promise<unknown> {
  const { tenant, runId } = context.job;
  if (typeof id !== "string") throw notByHand(listener.name);
  const row = await loadEvent(engine.store, tenant, id);
  if (row === undefined) throw notFound(`event ${id} is no longer in the book`, { id });
  const definition = listener.raw === true ? undefined : listener.events.find(({ topic }) => topic === row.topic);
  const said: unknown = JSON.parse(row.payload);
  if (!takes(listener, row, said)) throw advise(new Error("its sink does not take this event"), { skip: true });
  const payload = definition?.schema === undefined ? said : await payloadOf(definition, said);
  const heard = { id, rootId: row.root_event_id, depth: row.chain_depth };
  const chained = { runId, rootRunId: currentCause()?.rootRunId ?? runId, event: heard };
  const given = engine.contextFor(context) as { event?: EventInfo };
  given.event = toInfo(row);
  const handler = listener.run as (payload: unknown, context: unknown) => unknown;
  return withCause(chained, () => handler(payload, given));
}

/** Asked when the event is delivered and not when it is published, because whoever publishes it may not know the predicate. */
function takes({ where }: AnyListener, row: EventRow, said: unknown): boolean {
  return where === undefined || ask(where as Predicate, said, { event: toLiveEvent(row), previous: null });
}

function notByHand(listener: string): DaybookError {
  return invalid(`deliveries to listener "${listener}" are made by publishing: tx.events.publish(…)`);
}

// The payload fitted when it was published, but this process may have another version of the schema.
async function payloadOf(definition: AnyEvent, payload: unknown): Promise<unknown> {
  try {
    return await validatePayload(definition, payload);
  } catch (cause) {
    throw unfitPayload(cause);
  }
}

type Asked = {
  readonly tenant: string;
  readonly id: string;
  readonly resolve: (row: EventRow | undefined) => void;
  readonly reject: (error: unknown) => void;
};

/** The event with this id; undefined when it is gone. Deliveries that start together share one read, which is far cheaper than
 *  a copy of the payload in every job. */
function loadEvent(store: Store, tenant: string, id: string): Promise<EventRow | undefined> {
  return new Promise((resolve, reject) => {
    const waiting = waitingIn(store);
    waiting.push({ tenant, id, resolve, reject });
    if (waiting.length === 1) queueMicrotask(() => void answerAll(store));
  });
}

function waitingIn({ keep }: Store): Asked[] {
  return keep("events to load", () => []);
}

async function answerAll(store: Store): Promise<void> {
  for (const [tenant, asked] of Map.groupBy(waitingIn(store).splice(0), (each) => each.tenant)) {
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
