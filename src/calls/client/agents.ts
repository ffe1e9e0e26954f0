// Connections are kept and shared, but only among tenants to whom the same is allowed: one that may not reach an address
// must not find an open connection to it.
import type { Agent, Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { CallSettings } from "../settings.ts";
import type { AllowList } from "./allow-list.ts";
import { guardedConnector } from "./connector.ts";

export type Agents = {
  /** Sends with the connections of those to whom this is allowed; they stay until `send` has ended. */
  use<T>(allow: AllowList, send: (dispatcher: Dispatcher) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

type Kept = { readonly agent: Agent; users: number };

// Each is a set of connections; tenants with lists of their own are few.
const agentsMax = 50;
const connectMs = 10_000;
// A server that does not say how long it keeps a connection may close it at any time, and a request would be lost to that.
const keptMs = 1000;

export function createAgents(settings: Pick<CallSettings, "lookup" | "ca">, clock: Clock): Agents {
  // Those that were used last stand last.
  const agents = new Map<string, Kept>();
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

  function keep(id: string, made: Agent): Kept {
    const kept = { agent: made, users: 0 };
    agents.set(id, kept);
    for (const [other, { agent, users }] of agents) {
      if (agents.size <= agentsMax) break;
      if (users > 0 || other === id) continue;
      agents.delete(other);
      // Nobody sends with it, so there is nothing that its end could fail.
      agent.destroy().catch(() => undefined);
    }
    return kept;
  }

  return {
    async use(allow, send) {
      let kept = agents.get(allow.id);
      if (kept === undefined) {
        const made = await make(allow);
        kept = agents.get(allow.id) ?? keep(allow.id, made);
      } else if (agents.size > 1) {
        agents.delete(allow.id);
        agents.set(allow.id, kept);
      }
      kept.users++;
      try {
        return await send(kept.agent);
      } finally {
        kept.users--;
      }
    },
    async close() {
      const all = [...agents.values()];
      agents.clear();
      await Promise.all(all.map(({ agent }) => agent.destroy()));
    },
  };
}

// With the first call: it is large, and most books make none.
function loadUndici() {
  return import("undici");
}
