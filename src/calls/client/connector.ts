// Where sockets open. The socket connects to the very address that was checked: the check is part of the socket's own lookup, so
// a DNS answer cannot change in between. It runs for every connection: after a redirect, on a retry, for a name that was fine
// a moment ago.
import { AsyncLocalStorage } from "node:async_hooks";
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { rootCertificates } from "node:tls";
import type { buildConnector, Agent, Dispatcher } from "undici";
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { CallSettings } from "../room.ts";
import { forbiddenAddress, isOneOf, portOf, refusedDestination, type AllowList } from "./destination.ts";

/** Resolves a name to all of its addresses. */
export type Lookup = (
  host: string,
  answer: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void;

/** How long each part of opening a connection took, as the attempt's row keeps it; empty when a connection was reused. */
export type Phases = { dns_ms?: number; connect_ms?: number; tls_ms?: number };

/** Set around a request: a connection that is opened for it writes its times here. */
export const phasesOf = new AsyncLocalStorage<Phases>();

type Connect = ReturnType<typeof buildConnector>;
type ConnectorSettings = Pick<CallSettings, "lookup" | "ownAddresses" | "ca" | "responseBytesMax">;

const connectMs = 10_000;

function guardedConnector(
  build: typeof buildConnector,
  allow: AllowList,
  { lookup: resolve = resolveAll, ownAddresses = systemAddresses, ca, responseBytesMax }: ConnectorSettings,
  { clock, opened }: { readonly clock: Clock; readonly opened: (socket: Socket) => void },
): Connect {
  const trusted = ca.length === 0 ? {} : { ca: [...rootCertificates, ...ca] };
  const usual = { allowH2: false, timeout: connectMs, ...trusted };

  // One private address among the answers refuses the name: mixing it with public ones is a known attack.
  const checked =
    (open: boolean): LookupFunction =>
    (host, options, answer) => {
      const phases = phasesOf.getStore();
      const began = clock.monotonic();
      resolve(host, (error, addresses) => {
        if (phases !== undefined) phases.dns_ms = clock.monotonic() - began;
        const bad = open ? undefined : addresses.find(({ address }) => whyNot(address) !== undefined);
        const [first] = addresses;
        if (error !== null) answer(error, "", 0);
        else if (bad !== undefined) answer(refusedDestination(`${host} has the address ${bad.address}`), "", 0);
        else if (first === undefined) answer(noAddress(host), "", 0);
        else if (options.all === true) answer(null, [...addresses]);
        else answer(null, first.address, first.family);
      });
    };
  const whyNot = (address: string): string | undefined => {
    if (allow.allowsAddress(address)) return undefined;
    return forbiddenAddress(address) ?? (isOneOf(address, ownAddresses()) ? `${address} is this machine` : undefined);
  };
  const guarded = build({ ...usual, lookup: checked(false) });
  const unguarded = build({ ...usual, lookup: checked(true) });

  return (options, callback) => {
    const { hostname } = options;
    const literal = isIP(hostname);
    const open = allow.allowsHost(literal === 6 ? `[${hostname}]` : hostname.toLowerCase(), portOf(options));
    // A socket does not look up a literal address, so it is checked here.
    const bad = open || literal === 0 ? undefined : whyNot(hostname);
    if (bad !== undefined) return callback(refusedDestination(bad), null);
    const phases = phasesOf.getStore();
    const began = clock.monotonic();
    const socket = (open ? unguarded : guarded)(options, callback) as unknown as Socket | undefined;
    if (socket === undefined) return;
    opened(socket);
    socket.once("connect", () => capBytes(socket, socketBytesMax(responseBytesMax)));
    if (phases === undefined) return;
    socket.once("connect", () => (phases.connect_ms = clock.monotonic() - began - (phases.dns_ms ?? 0)));
    socket.once("secureConnect", () => {
      phases.tls_ms = clock.monotonic() - began - (phases.dns_ms ?? 0) - (phases.connect_ms ?? 0);
    });
  };
}

/** A body in chunks of one byte takes six times as much on the socket, and there are headers. */
function socketBytesMax(bodyBytesMax: number): number {
  return 8 * bodyBytesMax + 4 * limits.callResponseHeaderBytesMax;
}

/** Ends a connection on which one request is answered with more bytes than any answer needs. What an answer is made of besides its body and
 *  its headers (extensions of chunks, answers before the answer) has no end of its own, and nobody else counts it. */
function capBytes(socket: Socket, bytesMax: number): void {
  let [written, read, before] = [0, 0, 0];
  socket.on("readable", () => {
    // A request was written since: what comes now is its answer.
    if (socket.bytesWritten !== written) before = read;
    written = socket.bytesWritten;
    read = socket.bytesRead;
    if (read - before > bytesMax) socket.destroy(tooMuch(bytesMax));
  });
}

function tooMuch(bytesMax: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`the answer takes over ${bytesMax} bytes`), { code: "ERR_ANSWER_TOO_LONG" });
}

function resolveAll(host: string, answer: Parameters<Lookup>[1]): void {
  systemLookup(host, { all: true }, (error, addresses) => answer(error, addresses ?? []));
}

// Asked anew each time, because addresses come and go.
function systemAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address));
}

function noAddress(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${host} has no address`), { code: "ENOTFOUND" });
}

type Kept = { readonly agent: Agent; users: number; sockets: number };

// Each agent is a set of connections of one tenant to one host. Without connections it is small.
const agentsMax = 500;
// So many connections stay open that no request uses. A server may ask to keep one for a minute, and without a bound a book that calls
// many hosts for many tenants would open as many files as its process may have.
const idleSocketsMax = 100;
// A server that does not announce a keep-alive time may close an idle connection at any moment, and a request could be lost.
const keptMs = 1000;

export type Agents = ReturnType<typeof createAgents>;

/** Who sends: connections are shared by nobody else. A tenant that may not reach an address must not find an open connection to it,
 *  and a server that knows whom a connection belongs to must not take one tenant's request for another's. */
type Whose = {
  readonly tenant: string;
  /** The scheme, host and port that it begins with; redirects may lead elsewhere. */
  readonly origin: string;
  readonly allow: AllowList;
  /** On a connection of its own: a server may close one that was kept in the moment in which a request is sent on it, and then
   *  nobody can know whether it arrived. */
  readonly alone: boolean;
};

export function createAgents(settings: ConnectorSettings, clock: Clock) {
  // The most recently used come last.
  const agents = new Map<string, Kept>();
  let sockets = 0;
  async function make({ allow, alone }: Whose): Promise<Kept> {
    const undici = await loadUndici();
    const count = (socket: Socket): void => {
      kept.sockets++;
      sockets++;
      socket.once("close", () => {
        kept.sockets--;
        sockets--;
      });
    };
    const agent = new undici.Agent({
      connect: guardedConnector(undici.buildConnector, allow, settings, { clock, opened: count }),
      allowH2: false,
      pipelining: alone ? 0 : 1,
      keepAliveTimeout: keptMs,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: limits.callResponseHeaderBytesMax,
      // The run's timeout covers the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const kept: Kept = { agent, users: 0, sockets: 0 };
    return kept;
  }

  /** Closes those that were idle longest, until there are few enough agents and few enough idle connections. */
  function trim(): void {
    if (agents.size <= agentsMax && sockets <= idleSocketsMax) return;
    let idle = 0;
    for (const { users, sockets: own } of agents.values()) if (users === 0) idle += own;
    for (const [id, { agent, users, sockets: own }] of agents) {
      if (agents.size <= agentsMax && idle <= idleSocketsMax) return;
      if (users > 0 || (own === 0 && agents.size <= agentsMax)) continue;
      idle -= own;
      agents.delete(id);
      // No request uses it, so closing it can fail none.
      agent.destroy().catch(() => undefined);
    }
  }

  return {
    /** Sends with the connections of one tenant, which stay open until `send` has ended. */
    async use<T>(whose: Whose, send: (dispatcher: Dispatcher) => Promise<T>): Promise<T> {
      const id = JSON.stringify([whose.tenant, whose.alone, whose.allow.id, whose.origin]);
      const found = agents.get(id) ?? (await make(whose));
      // Another may have made one meanwhile.
      const kept = agents.get(id) ?? found;
      agents.delete(id);
      agents.set(id, kept);
      kept.users++;
      try {
        return await send(kept.agent);
      } finally {
        kept.users--;
        trim();
      }
    },
    async close(): Promise<void> {
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
