// What the parts of this room share for one open book.
import type { Clock } from "../core/clock.ts";
import { createBegins, type Begins } from "./attempt/begin.ts";
import type { AttemptEnd } from "./attempt/end.ts";
import { createAgents, type Agents } from "./client/connector.ts";
import type { CallAnnounce } from "./facts.ts";
import { callSettings, type CallOptions, type CallSettings } from "./settings.ts";

export type CallsRoom = {
  readonly settings: CallSettings;
  readonly agents: Agents;
  /** Writes the attempts that begin. */
  readonly begins: Begins;
  /** The ends of attempts by run, until they are on disk. */
  readonly heard: Map<string, AttemptEnd>;
  /** How many calls a tenant may submit before its open calls are counted again. */
  readonly roomLeft: Map<string, number>;
  readonly announce: CallAnnounce | undefined;
};

export function createCallsRoom(options: CallOptions | undefined, clock: Clock, announce?: CallAnnounce): CallsRoom {
  const settings = callSettings(options);
  return {
    settings,
    announce,
    heard: new Map(),
    roomLeft: new Map(),
    agents: createAgents(settings, clock),
    begins: createBegins({ settings, announce }),
  };
}
