// What the parts of this room share for one open book.
import type { Clock } from "../core/clock.ts";
import { createBegins, type Begins } from "./attempt/begin.ts";
import type { AttemptEnd } from "./attempt/end.ts";
import { createAgents, type Agents } from "./client/agents.ts";
import type { CallEars } from "./facts.ts";
import { callSettings, type CallOptions, type CallSettings } from "./settings.ts";

export type CallsRoom = {
  readonly settings: CallSettings;
  readonly agents: Agents;
  /** Writes down that attempts begin. */
  readonly begins: Begins;
  /** What came back, by run, until it is on disk. */
  readonly heard: Map<string, AttemptEnd>;
  /** How many calls a tenant may still submit before they are counted again. */
  readonly roomLeft: Map<string, number>;
  readonly ears: CallEars | undefined;
};

export function createCallsRoom(options: CallOptions | undefined, clock: Clock, ears?: CallEars): CallsRoom {
  const settings = callSettings(options);
  return {
    ...{ settings, ears, heard: new Map(), roomLeft: new Map() },
    agents: createAgents(settings, clock),
    begins: createBegins({ settings, ears }),
  };
}
