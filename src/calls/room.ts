// What the parts of this room share for one open book.
import type { Clock } from "../core/clock.ts";
import type { AttemptEnd } from "./attempt/end.ts";
import { createAgents, type Agents } from "./client/agents.ts";
import type { OnCallFact } from "./facts.ts";
import { callSettings, type CallOptions, type CallSettings } from "./settings.ts";

export type CallsRoom = {
  readonly settings: CallSettings;
  readonly agents: Agents;
  /** What came back, by run, until it is on disk. */
  readonly heard: Map<string, AttemptEnd>;
  /** How many calls a tenant may still submit before they are counted again. */
  readonly roomLeft: Map<string, number>;
  readonly onFact: OnCallFact | undefined;
};

export function createCallsRoom(options: CallOptions | undefined, clock: Clock, onFact?: OnCallFact): CallsRoom {
  const settings = callSettings(options);
  return { settings, agents: createAgents(settings, clock), heard: new Map(), roomLeft: new Map(), onFact };
}
