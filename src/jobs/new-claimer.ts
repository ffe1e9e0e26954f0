// Who claims for a worker: what this process hosts, or one reservation and nothing else.
import type { Claimer } from "./claim.ts";
import type { Reserved } from "./direct/claim-reserved.ts";
import type { Engine } from "./engine.ts";

export function newClaimer(engine: Engine, queues: Claimer["queues"], reserved: Reserved | undefined): Claimer {
  const { mustWait } = engine.hooks;
  return {
    ...{ sessionSeq: engine.session().seq, queues, cursor: 0, hostCursors: new Map() },
    hosts: new Set(reserved === undefined ? engine.definitions.keys() : []),
    ...(reserved === undefined ? {} : { reserved }),
    ...(mustWait === undefined ? {} : { mustWait }),
  };
}
