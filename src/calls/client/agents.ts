// Connections are kept and shared, but only among tenants to whom the same is allowed: one that may not reach an address
// must not find an open connection to it.
import type { Agent, Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { CallSettings } from "../settings.ts";
import type { AllowList } from "./allow-list.ts";
import { guardedConnector } from "./connector.ts";

export type Agents = {
  /** The connections of those to whom this is allowed. */
  for(allow: AllowList): Promise<Dispatcher>;
  close(): Promise<void>;
};

// Each is a set of connections; tenants with lists of their own are few.
const agentsMax = 50;
const connectMs = 10_000;
// A server that does not say how long it keeps a connection may close it at any time, and a request would be lost to that.
const keptMs = 1000;

export function createAgents(settings: Pick<CallSettings, "lookup" | "ca">, clock: Clock): Agents {
  const agents = new Map<string, Agent>();
  async function make(allow: AllowList): Promise<Agent> {
    const undici = await loadUndici();
    const { lookup, ca } = settings;
    return new undici.Agent({
      connect: guardedConnector(undici.buildConnector, { allow, clock, lookup, ca, connectMs }),
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: keptMs,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: limits.callResponseHeaderBytesMax,
      // The run's own timeout covers all of it.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  return {
    async for(allow) {
      const known = agents.get(allow.id);
      if (known !== undefined) return known;
      const made = await make(allow);
      const other = agents.get(allow.id);
      if (other !== undefined) return other;
      const [oldest] = agents.keys();
      if (agents.size >= agentsMax && oldest !== undefined) {
        void agents.get(oldest)?.close();
        agents.delete(oldest);
      }
      agents.set(allow.id, made);
      return made;
    },
    async close() {
      const all = [...agents.values()];
      agents.clear();
      await Promise.all(all.map((agent) => agent.destroy()));
    },
  };
}

// With the first call: it is large, and most books make none.
function loadUndici() {
  return import("undici");
}
