// How a worker begins: it says what it hosts, and sweeps before it is anybody's.
import type { Claimer } from "../claim/claim.ts";
import type { Reserved } from "../direct/reservation.ts";
import { writeDefinitions } from "../definition.ts";
import type { Engine } from "../engine.ts";
import { newTurns } from "../claim/lane.ts";
import { hostNames } from "../settle/rescue.ts";
import { checkWorkerOptions, type Worker, type WorkerOptions } from "./worker-options.ts";
import { createWorker } from "./worker.ts";

/** Claims for what this process hosts. With `reserved` the worker serves that reservation alone, and renews it as long as it lives. `join` is told of it before
 *  it claims: it may run a job before it has swept, and whoever closes the book must find it. */
export async function startWorker(
  engine: Engine,
  options: WorkerOptions = {},
  reserved?: Reserved & { renew(): Promise<void> },
  join?: (worker: Worker) => void,
): Promise<Worker> {
  const settings = checkWorkerOptions(options);
  const claimer: Claimer = {
    sessionSeq: engine.session().seq,
    hosts: new Set(reserved === undefined ? engine.definitions.keys() : []),
    queues: settings.queues,
    turns: newTurns(),
    hostCursors: new Map(),
    ...(reserved === undefined ? {} : { reserved }),
    kinds: engine.kinds,
  };
  if (reserved === undefined) await writeDefinitions(engine, engine.definitions.values());
  await hostNames(engine, claimer);
  const { worker, sweepNow } = createWorker(engine, settings, claimer, () => reserved?.renew());
  join?.(worker);
  await sweepNow();
  return worker;
}
