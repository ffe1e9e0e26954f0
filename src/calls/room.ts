// What the parts of this room share for one open book, and how open(…, { calls }) sets it: the key, the allowed destinations,
// and the limits.
import type { Clock } from "../core/clock.ts";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { keyRing } from "../core/seal.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { createBegins } from "./attempt/begin.ts";
import type { AttemptEnd } from "./attempt/end.ts";
import type { CallAnnounce } from "./call.ts";
import { createAgents, type Lookup } from "./client/connector.ts";
import { allowList, usualPorts, type AllowList, type PortPolicy } from "./client/destination.ts";

export type CallOptions = {
  /** Seals requests in the book: 32 bytes as base64 or hex, or several, of which the first seals and all open. Default
   *  `DAYBOOK_KEY` of the environment, where they are separated by commas. Every process that sends needs it. */
  readonly key?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** Allowed destinations beyond public addresses: networks (`"10.0.0.0/8"`), addresses, and hosts with their port
   *  (`"localhost:8080"`); one list for all tenants, or a function of the tenant. */
  readonly allow?: readonly string[] | ((tenant: string) => readonly string[]);
  /** The allowed ports; default 80, 443 and those from 1024 on that belong to no other protocol. */
  readonly ports?: readonly number[];
  /** Limits for one tenant and one host: requests at the same time (default 6), and starts per time. */
  readonly perHost?: {
    readonly concurrency?: number;
    readonly rate?: { readonly max: number; readonly per: Duration };
  };
  /** How many requests one tenant may have at the same time, to all hosts and from all processes; default as many as workers have
   *  places. With fewer than a worker has, a tenant whose hosts all hang leaves places for the others. */
  readonly perTenant?: { readonly concurrency?: number };
  /** About how many open calls a tenant may have; default one million. Each process counts only now and then, so each may exceed
   *  it by at most half of it, and by at most 1000. */
  readonly queuedMax?: number;
  /** How much of an answer is kept; default 64 KiB, at most 1 MiB. */
  readonly responseBytesMax?: number;
  /** Certificates to trust besides the system's, in PEM. */
  readonly ca?: string | readonly string[];
  /** @internal Resolves names in place of the system, in tests. */
  readonly lookup?: Lookup;
  /** @internal The addresses of this machine, in tests. */
  readonly ownAddresses?: () => readonly string[];
};

export type CallSettings = ReturnType<typeof callSettings>;

const known = [
  "key",
  "allow",
  "ports",
  "perHost",
  "perTenant",
  "queuedMax",
  "responseBytesMax",
  "ca",
  "lookup",
  "ownAddresses",
];

export function callSettings(options: CallOptions = {}) {
  refuseUnknown(options, known, "calls");
  const { perHost = {}, perTenant = {}, ports, ca = [] } = options;
  refuseUnknown(perHost, ["concurrency", "rate"], "calls.perHost");
  refuseUnknown(perTenant, ["concurrency"], "calls.perTenant");
  const { rate } = perHost;
  if (rate !== undefined) refuseUnknown(rate, ["max", "per"], "calls.perHost.rate");
  const key = options.key ?? fromEnvironment();
  return {
    keys: key === undefined ? undefined : keyRing(key),
    allowFor: allowFor(options.allow ?? []),
    ports: ports === undefined ? usualPorts : onlyPorts(ports),
    perHost: {
      concurrency: checkCount(perHost.concurrency ?? limits.callsPerHost, "calls.perHost.concurrency", 1, 10_000),
      rate:
        rate === undefined
          ? null
          : {
              max: checkCount(rate.max, "calls.perHost.rate.max", 1),
              ms: durationMs(rate.per, "calls.perHost.rate.per", { min: 1 }),
            },
    },
    perTenant: {
      concurrency:
        perTenant.concurrency === undefined
          ? null
          : checkCount(perTenant.concurrency, "calls.perTenant.concurrency", 1, 10_000),
    },
    queuedMax: checkCount(options.queuedMax ?? limits.callsQueuedMax, "calls.queuedMax", 1, 1_000_000_000),
    responseBytesMax: checkCount(
      options.responseBytesMax ?? limits.callResponseBytesMax,
      "calls.responseBytesMax",
      0,
      limits.jsonBytesMax,
    ),
    ca: typeof ca === "string" ? [ca] : ca,
    lookup: options.lookup,
    ownAddresses: options.ownAddresses,
  };
}

function fromEnvironment(): string | undefined {
  const key = process.env["DAYBOOK_KEY"];
  return key === undefined || key === "" ? undefined : key;
}

function onlyPorts(ports: readonly number[]): PortPolicy {
  const allowed = new Set(ports.map((port) => checkCount(port, "calls.ports", 1, 65_535)));
  return (port) => allowed.has(port);
}

// Every request asks for its tenant's list, so equal lists are parsed once.
function allowFor(given: NonNullable<CallOptions["allow"]>): (tenant: string) => AllowList {
  if (typeof given !== "function") {
    if (!Array.isArray(given)) throw invalid(`calls.allow is a list of texts or a function, not ${quote(given)}`);
    const list = allowList(given);
    return () => list;
  }
  const lists = new Map<string, AllowList>();
  return (tenant) => {
    const entries = given(tenant);
    const id = JSON.stringify(entries);
    const list = lists.get(id) ?? allowList(entries);
    if (lists.size > 1000) lists.clear();
    lists.set(id, list);
    return list;
  };
}

export type CallsRoom = ReturnType<typeof createCallsRoom>;

export function createCallsRoom(options: CallOptions | undefined, clock: Clock, announce?: CallAnnounce) {
  const settings = callSettings(options);
  return {
    settings,
    announce,
    /** The ends of attempts by run, until they are on disk. */
    heard: new Map<string, AttemptEnd>(),
    /** How many calls a tenant may submit before its open calls are counted again. */
    roomLeft: new Map<string, number>(),
    agents: createAgents(settings, clock),
    /** Writes the attempts that begin. */
    begins: createBegins({ settings, announce }),
  };
}
