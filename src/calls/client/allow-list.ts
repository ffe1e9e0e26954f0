// What an operator opens beyond the public addresses: networks ("10.0.0.0/8"), addresses, and destinations by their name
// and port ("localhost:8080"). A tenant may have a list of its own.
import ipaddr from "ipaddr.js";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { readAddress } from "./address.ts";

export type AllowList = {
  /** The same for equal lists: connections are shared by those that allow the same. */
  readonly id: string;
  allowsAddress(address: string): boolean;
  /** `host` as in a URL: lower case, an IPv6 address in brackets. */
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
  const [text = "", bits] = entry.split("/");
  const address = readAddress(text);
  if (address === undefined) {
    if (bits !== undefined) throw invalid(`${quote(entry)} is not a network: ${examples}`);
    return undefined;
  }
  const most = address instanceof ipaddr.IPv4 ? 32 : 128;
  const length = bits === undefined ? most : Number(bits);
  if (!Number.isInteger(length) || length < 0 || length > most || bits === "") {
    throw invalid(`${quote(entry)} is not a network: ${examples}`);
  }
  return [address, length];
}

function readHost(entry: string): string {
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/.exec(entry) ?? [];
  const url = host === "" ? null : URL.parse(`http://${host}:${port}/`);
  // The port of http is left out of a URL.
  if (url === null || url.hostname === "" || url.username !== "" || url.pathname !== "/") {
    throw invalid(`${quote(entry)} is not an entry of an allow-list: ${examples}`);
  }
  return `${url.hostname}:${Number(port)}`;
}

const examples = 'use a network ("10.0.0.0/8"), an address ("127.0.0.1"), or a host with its port ("localhost:8080")';

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [network, length]: Network): boolean {
  return address.kind() === network.kind() && address.match([network, length] as [never, number]);
}
