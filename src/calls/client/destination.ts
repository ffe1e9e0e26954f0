// Whether a request may go where its URL says. This is asked before anything is sent and again for each redirect; what a
// name resolves to is asked where the socket opens (connector.ts).
import { isIP } from "node:net";
import { DaybookError } from "../../core/error.ts";
import { forbiddenAddress } from "./address.ts";
import type { AllowList } from "./allow-list.ts";

/** For what is refused. The message is for everybody; the reason is for the operator, since it may say what a network looks
 *  like from the inside. */
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

export function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
}

// Ports above 1024 at which other protocols listen that would take a request for theirs: those of the fetch standard.
const otherProtocols: ReadonlySet<number> = new Set([
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
]);

/** 80, 443 and what is above 1024, but for ports of other protocols. */
export const usualPorts: PortPolicy = (port) =>
  port === 80 || port === 443 || (port >= 1024 && port <= 65_535 && !otherProtocols.has(port));
