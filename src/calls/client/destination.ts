// Whether a request may go where its URL says: asked before anything is sent and again for each redirect. The addresses that a
// name resolves to are checked where the socket opens (connector.ts).
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { DaybookError, invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";

/** The error of a refused destination. Anyone may see the message; the reason is for the operator, because it may reveal the
 *  inside of a network. */
export function refusedDestination(reason: string): DaybookError {
  return new DaybookError("forbidden", "the destination is not allowed", { details: { reason } });
}

export type PortPolicy = (port: number) => boolean;

/** Why this URL may not be requested, or undefined. */
export function refuseDestination(url: URL, allow: AllowList, ports: PortPolicy): string | undefined {
  if (url.protocol !== "http:" && url.protocol !== "https:") return `the scheme ${url.protocol} is not http or https`;
  if (url.username !== "" || url.password !== "") return "the URL carries a user name or a password";
  const port = portOf(url);
  if (url.hostname === "") return "the URL names no host";
  if (allow.allowsHost(url.hostname, port)) return undefined;
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(bare) !== 0) {
    if (allow.allowsAddress(bare)) return undefined;
    const why = forbiddenAddress(bare);
    if (why !== undefined) return why;
  }
  return ports(port) ? undefined : `port ${port} is not one that calls may use`;
}

export function portOf(url: Pick<URL, "port" | "protocol">): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
}

// Ports above 1024 of other protocols, whose servers could take a request for theirs. The list is the fetch standard's.
const otherProtocols: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** 80, 443 and the ports from 1024 on, except those of other protocols. */
export const usualPorts: PortPolicy = (port) =>
  port === 80 || port === 443 || (port >= 1024 && port <= 65_535 && !otherProtocols.has(port));

/** What an operator allows beyond public addresses: networks ("10.0.0.0/8"), addresses, and hosts with their port
 *  ("localhost:8080"). A tenant may have its own list. */
export type AllowList = {
  /** Equal lists have equal ids. */
  readonly id: string;
  allowsAddress(address: string): boolean;
  /** `host` is as in a URL: lower case, an IPv6 address in brackets. */
  allowsHost(host: string, port: number): boolean;
};

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

export function allowList(entries: readonly string[]): AllowList {
  const networks: Network[] = [];
  const hosts = new Set<string>();
  for (const entry of entries) {
    const network = readNetwork(entry);
    if (network !== undefined) networks.push(network);
    else hosts.add(readHost(entry));
  }
  return {
    id: JSON.stringify([...new Set(entries)].toSorted()),
    allowsAddress(text) {
      const address = readAddress(text);
      return address !== undefined && networks.some((network) => isIn(address, network));
    },
    allowsHost: (host, port) => hosts.has(`${host}:${port}`),
  };
}

function readNetwork(entry: unknown): Network | undefined {
  if (typeof entry !== "string") throw invalid(`${quote(entry)} is not an entry of an allow-list: ${examples}`);
  const [, text = "", bits] = /^([^/]*)(?:\/(.*))?$/s.exec(entry) ?? [];
  const address = readAddress(text);
  if (address === undefined && bits === undefined) return undefined;
  const most = address instanceof ipaddr.IPv4 ? 32 : 128;
  const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (address === undefined || !(length <= most)) throw invalid(`${quote(entry)} is not a network: ${examples}`);
  return [address, length];
}

function readHost(entry: string): string {
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/.exec(entry) ?? [];
  const url = host === "" ? null : URL.parse(`http://${host}:${port}/`);
  // A URL leaves out port 80.
  if (url === null || url.hostname === "" || url.username !== "" || url.pathname !== "/") {
    throw invalid(`${quote(entry)} is not an entry of an allow-list: ${examples}`);
  }
  return `${url.hostname}:${Number(port)}`;
}

const examples = 'use a network ("10.0.0.0/8"), an address ("127.0.0.1"), or a host with its port ("localhost:8080")';

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [network, length]: Network): boolean {
  return address.kind() === network.kind() && address.match([network, length] as [never, number]);
}

/** Why an address is not public, for the operator and not for a tenant; undefined when it is public. Refused are this machine,
 *  its network, cloud metadata services, and IPv6 addresses that embed one of these. */
export function forbiddenAddress(text: string): string | undefined {
  const address = readAddress(text);
  if (address === undefined) return `${text} is not an address`;
  const inner = innerAddress(address);
  const range = inner.range();
  if (range !== "unicast") return `${text} is ${inner === address ? "" : `${inner.toString()}, `}${range}`;
  // What is public of IPv6 is one eighth of it; ranges that are new or forgotten are in the rest.
  if (inner instanceof ipaddr.IPv6 && ((inner.parts[0] ?? 0) & 0xe000) !== 0x2000) return `${text} is not in 2000::/3`;
  if (cloudAddresses.has(inner.toString())) return `${text} is a cloud's own service`;
  return undefined;
}

/** Whether this is one of these addresses, in whatever spelling: this machine is not reached by its public addresses either. */
export function isOneOf(text: string, addresses: readonly string[]): boolean {
  const plain = (each: string): string | undefined => {
    const address = readAddress(each);
    return address === undefined ? undefined : innerAddress(address).toNormalizedString();
  };
  const wanted = plain(text);
  return addresses.some((each) => plain(each) === wanted);
}

/** Reads an address; an IPv4 address in IPv6 notation becomes IPv4. Undefined when the text is not an address. An address with a
 *  zone is not public, so it is refused too. */
function readAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = text.replace(/^\[|\]$/g, "");
  if (bare.includes("%") || !/^[0-9a-f.:]+$/i.test(bare)) return undefined;
  // ipaddr reads "::8.8.8.8" as if it were mapped; it is an IPv6 address of an old kind, and not public.
  if (/^::\d+\./.test(bare)) return undefined;
  // ipaddr also reads "0177.1" and "2130706433". No resolver writes these, and a URL has normalised them already.
  if (!bare.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(bare)) return undefined;
  if (!ipaddr.isValid(bare)) return undefined;
  const address = ipaddr.parse(bare);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

// Azure's platform service has an address that looks public.
const cloudAddresses: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** The IPv4 address that a gateway would translate this address to; otherwise the address itself. */
function innerAddress(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4) return address;
  const { parts } = address;
  const last = (): ipaddr.IPv4 => new ipaddr.IPv4(address.toByteArray().slice(12));
  // 64:ff9b::/96 is the public NAT64 prefix; other prefixes of its kind (64:ff9b:1::/48) are local to a network.
  if (address.range() === "rfc6052" && parts.slice(2, 6).every((part) => part === 0)) return last();
  // ISATAP embeds an IPv4 address in the lower half of any prefix.
  if (((parts[4] ?? 0) & ~0x0200) === 0 && parts[5] === 0x5efe) return last();
  return address;
}
