// Listen: one run of a delivery, from its event to the listener's function. The engine runs it like any job.
import { DaybookError, describeError, invalid } from "../core/error.ts";
import { currentCause, withCause } from "../core/cause.ts";
import type { RunContext } from "../jobs/context.ts";
import { defineJob, type AnyJob } from "../jobs/define.ts";
import type { Engine } from "../jobs/engine.ts";
import { catchUp, isCatchUp } from "./catch-up.ts";
import type { DeliveryParams } from "./delivery.ts";
import type { AnyEvent, AnyListener } from "./define.ts";
import { toInfo, type EventInfo } from "./event-info.ts";
import { deliveryName } from "./listener.ts";
import { loadEvent } from "./load-events.ts";
import { validatePayload } from "./prepare.ts";

/** What a listener's function finds in its context besides what a job does. */
export type ListenerParts = {
  readonly event: EventInfo;
};

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
      run: (engine, params, context) =>
        isCatchUp(params)
          ? catchUp(engine, params, context)
          : listen(engine, listener, params as DeliveryParams, context),
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
  if (typeof id !== "string") {
    throw notByHand(listener.name);
  }
  const row = await loadEvent(engine.store, tenant, id);
  if (row === undefined)
    throw new DaybookError("not_found", `event ${id} is no longer in the book`, { details: { id } });
  const definition = listener.raw === true ? undefined : listener.events.find(({ topic }) => topic === row.topic);
  const said: unknown = JSON.parse(row.payload);
  const payload = definition?.schema === undefined ? said : await fitting(definition, said);
  const heard = { id, rootId: row.root_event_id, depth: row.chain_depth };
  const chained = { runId, rootRunId: currentCause()?.rootRunId ?? runId, event: heard };
  const given = engine.contextFor(context) as { event?: EventInfo };
  given.event = toInfo(row);
  const handler = listener.run as (payload: unknown, context: unknown) => unknown;
  return withCause(chained, () => handler(payload, given));
}

function notByHand(listener: string): DaybookError {
  return invalid(`deliveries to listener "${listener}" are made by publishing: tx.events.publish(…)`);
}

// It fitted when it was published; another version of the program may see it differently.
async function fitting(definition: AnyEvent, payload: unknown): Promise<unknown> {
  try {
    return await validatePayload(definition, payload);
  } catch (cause) {
    const error = new Error(describeError(cause).message, { cause });
    error.name = "DependencyError";
    throw error;
  }
}
