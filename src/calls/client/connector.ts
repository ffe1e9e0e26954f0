// Where sockets open. The address that was checked is the address that is connected to: the check is part of the lookup
// that the socket itself uses, so an answer that changes in between is never seen, and it runs for every connection,
// whatever led to it: a redirect, a retry, a name that was fine a moment ago.
import { AsyncLocalStorage } from "node:async_hooks";
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { rootCertificates } from "node:tls";
import type { buildConnector } from "undici";
import type { Clock } from "../../core/clock.ts";
import { forbiddenAddress } from "./address.ts";
import type { AllowList } from "./allow-list.ts";
import { refusedDestination } from "./destination.ts";

/** Resolves a name to all of its addresses. */
export type Lookup = (
  host: string,
  answer: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void;

/** How long the parts of opening a connection took; null when a connection was at hand. */
export type Phases = { dnsMs: number | null; connectMs: number | null; tlsMs: number | null };

/** Set around a request, so that the connection that is opened for it can say how long that took. */
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

  // One bad answer spoils the name: whoever mixes a private address among good ones is not to be helped to the good ones.
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
    // A socket never looks up what is an address already.
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
