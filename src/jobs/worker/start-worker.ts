// How a worker begins: whom it claims for (what this process hosts, or one reservation and nothing else), who must know of it,
// and its first sweep.
import type { Claimer } from "../claim.ts";
import { writeDefinitions } from "../hosting.ts";
import type { Reserved } from "../direct/claim-reserved.ts";
import type { Engine } from "../engine.ts";
import { newTurns } from "../lane.ts";
import { hostNames } from "../rescue.ts";
import { createWorker } from "./worker.ts";
import { checkWorkerOptions, type Worker, type WorkerOptions } from "./worker-options.ts";

/** With `reserved` the worker serves that reservation alone, and renews it as long as it lives. `join` is told of it before
 *  it claims: it may run a job before it has swept, and whoever closes the book must find it. */
export async function startWorker(
  engine: Engine,
  options: WorkerOptions = {},
  reserved?: Reserved & { renew(): Promise<void> },
  join?: (worker: Worker) => void,
): Promise<Worker> {
  const settings = checkWorkerOptions(options);
  const claimer = newClaimer(engine, settings.queues, reserved);
  if (reserved === undefined) await writeDefinitions(engine, engine.definitions.values());
  await hostNames(engine, claimer);
  const { worker, sweepNow } = createWorker(engine, settings, claimer, () => reserved?.renew());
  join?.(worker);
  await sweepNow();
  return worker;
}

function newClaimer(engine: Engine, queues: Claimer["queues"], reserved: Reserved | undefined): Claimer {
  const { mustWait } = engine.hooks;
  return {
    ...{ sessionSeq: engine.session().seq, queues, turns: newTurns(), hostCursors: new Map() },
    hosts: new Set(reserved === undefined ? engine.definitions.keys() : []),
    ...(reserved === undefined ? {} : { reserved }),
    ...(mustWait === undefined ? {} : { mustWait }),
  };
}
