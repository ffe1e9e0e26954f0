// Where sockets open. The socket connects to the very address that was checked: the check is part of the socket's own lookup, so
// a DNS answer cannot change in between. It runs for every connection: after a redirect, on a retry, for a name that was fine
// a moment ago.
import { AsyncLocalStorage } from "node:async_hooks";
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { rootCertificates } from "node:tls";
import type { buildConnector, Agent, Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { CallSettings } from "../room.ts";
import { forbiddenAddress, type AllowList, refusedDestination } from "./destination.ts";

/** Resolves a name to all of its addresses. */
export type Lookup = (
  host: string,
  answer: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void;

/** How long each part of opening a connection took; null when a connection was reused. */
export type Phases = { dnsMs: number | null; connectMs: number | null; tlsMs: number | null };

/** Set around a request: a connection that is opened for it writes its times here. */
export const phasesOf = new AsyncLocalStorage<Phases>();

export type ConnectorParts = {
  readonly allow: AllowList;
  readonly clock: Clock;
  readonly lookup: Lookup | undefined;
  readonly ca: readonly string[];
  readonly connectMs: number;
};

type Connect = ReturnType<typeof buildConnector>;

export function guardedConnector(build: typeof buildConnector, parts: ConnectorParts): Connect {
  const { allow, clock, ca } = parts;
  const resolve = parts.lookup ?? resolveAll;
  const trusted = ca.length === 0 ? {} : { ca: [...rootCertificates, ...ca] };
  const usual = { allowH2: false, timeout: parts.connectMs, ...trusted };

  // One private address among the answers refuses the name: mixing it with public ones is a known attack.
  const checked =
    (open: boolean): LookupFunction =>
    (host, options, answer) => {
      const phases = phasesOf.getStore();
      const began = clock.monotonic();
      resolve(host, (error, addresses) => {
        if (phases !== undefined) phases.dnsMs = clock.monotonic() - began;
        const bad = open ? undefined : addresses.find(({ address }) => !isAllowed(address));
        const [first] = addresses;
        if (error !== null) answer(error, "", 0);
        else if (bad !== undefined) answer(refusedDestination(`${host} has the address ${bad.address}`), "", 0);
        else if (first === undefined) answer(noAddress(host), "", 0);
        else if (options.all === true) answer(null, [...addresses]);
        else answer(null, first.address, first.family);
      });
    };
  const isAllowed = (address: string): boolean =>
    allow.allowsAddress(address) || forbiddenAddress(address) === undefined;
  const guarded = build({ ...usual, lookup: checked(false) });
  const opened = build({ ...usual, lookup: checked(true) });

  return (options, callback) => {
    const { hostname, protocol } = options;
    const port = options.port === "" ? (protocol === "https:" ? 443 : 80) : Number(options.port);
    const literal = isIP(hostname);
    const open = allow.allowsHost(literal === 6 ? `[${hostname}]` : hostname.toLowerCase(), port);
    // A socket does not look up a literal address, so it is checked here.
    if (!open && literal !== 0 && !isAllowed(hostname)) {
      callback(refusedDestination(forbiddenAddress(hostname) ?? hostname), null);
      return;
    }
    const phases = phasesOf.getStore();
    const began = clock.monotonic();
    const socket = (open ? opened : guarded)(options, callback) as unknown as NodeJS.EventEmitter | undefined;
    if (phases === undefined || socket === undefined) return;
    socket.once("connect", () => (phases.connectMs = clock.monotonic() - began - (phases.dnsMs ?? 0)));
    socket.once("secureConnect", () => {
      phases.tlsMs = clock.monotonic() - began - (phases.dnsMs ?? 0) - (phases.connectMs ?? 0);
    });
  };
}

function resolveAll(host: string, answer: Parameters<Lookup>[1]): void {
  systemLookup(host, { all: true }, (error, addresses) => answer(error, addresses ?? []));
}

function noAddress(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${host} has no address`), { code: "ENOTFOUND" });
}

/** Connections are kept and shared, but only among tenants with the same allow-list: a tenant that may not reach an address must
 *  not find an open connection to it. */
export type Agents = {
  /** Sends with the connections of this allow-list, which stay open until `send` has ended. */
  use<T>(allow: AllowList, send: (dispatcher: Dispatcher) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

type Kept = { readonly agent: Agent; users: number };

// Each agent is a set of connections, one per allow-list. Few tenants have their own list.
const agentsMax = 50;
const connectMs = 10_000;
// A server that does not announce a keep-alive time may close an idle connection at any moment, and a request could be lost.
const keptMs = 1000;

export function createAgents(settings: Pick<CallSettings, "lookup" | "ca">, clock: Clock): Agents {
  // The most recently used come last.
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
      // The run's timeout covers the whole exchange.
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
      // No request uses it, so closing it can fail none.
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

// Loaded with the first call: undici is large, and most books make no calls.
function loadUndici() {
  return import("undici");
}
