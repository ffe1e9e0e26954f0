// Which addresses the outside world is made of. Everything else is refused: this machine, its network, the clouds' metadata
// services, and whatever an address of IPv6 hides one of these in.
import ipaddr from "ipaddr.js";

/** Why an address is not a public one; undefined when it is. The text is for the operator, not for a tenant. */
export function forbiddenAddress(text: string): string | undefined {
  const address = readAddress(text);
  if (address === undefined) return `${text} is not an address`;
  const inner = innerAddress(address);
  const range = inner.range();
  if (range !== "unicast") return `${text} is ${inner === address ? "" : `${inner.toString()}, `}${range}`;
  if (cloudAddresses.has(inner.toString())) return `${text} is a cloud's own service`;
  return undefined;
}

/** The address, with an IPv4 one that is only written as IPv6 taken out; undefined when it is none. A zone is no part of
 *  an address of the outside. */
export function readAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = text.replace(/^\[|\]$/g, "");
  if (bare.includes("%") || !/^[0-9a-f.:]+$/i.test(bare)) return undefined;
  // ipaddr also reads "0177.1" and "2130706433", as no resolver writes them; a URL has turned them into four numbers.
  if (!bare.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(bare)) return undefined;
  if (!ipaddr.isValid(bare)) return undefined;
  const address = ipaddr.parse(bare);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

// Azure's platform service has an address that looks public.
const cloudAddresses: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** The IPv4 address that a gateway would make of this one, or the address itself. */
function innerAddress(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4) return address;
  const { parts } = address;
  const last = (): ipaddr.IPv4 => new ipaddr.IPv4(address.toByteArray().slice(12));
  // 64:ff9b::/96 is the world's own NAT64; the others of its kind (64:ff9b:1::/48) are some network's own.
  if (address.range() === "rfc6052" && parts.slice(2, 6).every((part) => part === 0)) return last();
  // ::a.b.c.d, which was given up long ago and which some systems still read; ::ffff:0:a.b.c.d is refused by its range.
  if (parts.slice(0, 6).every((part) => part === 0) && address.range() === "unicast") return last();
  // ISATAP writes an IPv4 address into the lower half of any prefix.
  if (((parts[4] ?? 0) & ~0x0200) === 0 && parts[5] === 0x5efe) return last();
  return address;
}
