// TLS to a NATS server: what may be given, and whose certificate is taken.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type PeerCertificate } from "node:tls";
import { invalid } from "../../../core/error.ts";
import { quote } from "../../../core/quote.ts";
import { refuseUnknown } from "../../../core/suggest.ts";

/** Certificates of your own, in PEM: who may have signed the server's, and who we are. */
export type NatsTls = { readonly ca?: string; readonly cert?: string; readonly key?: string };

/** @param demanded A server is given as "tls://…". */
export function tlsSettings(given: boolean | NatsTls | undefined, demanded: boolean): NatsTls | undefined {
  if (given === false && demanded) throw invalid('a nats server is given as "tls://", and tls is false: correct one');
  if (given === undefined || given === false) return demanded ? {} : undefined;
  if (given === true) return {};
  if (typeof given !== "object" || given === null) {
    throw invalid(`nats tls is ${quote(given)}: give true, or { ca, cert, key }`);
  }
  refuseUnknown(given, ["ca", "cert", "key"], "nats.tls");
  const { ca, cert, key } = given;
  if ((cert === undefined) !== (key === undefined)) throw invalid("nats tls has one of cert and key: give both");
  const advice = "give the text of the file in PEM, not its name";
  // A list of certificates in which there is none would be taken for an empty one.
  if (ca !== undefined) check(() => new X509Certificate(ca), `nats tls.ca cannot be read: ${advice}`);
  check(() => createSecureContext(given), `nats tls.cert and tls.key cannot be read, or are no pair: ${advice}`);
  return given;
}

function check(read: () => unknown, otherwise: string): void {
  try {
    read();
  } catch (cause) {
    throw invalid(otherwise, { cause });
  }
}

type Identity = { checkServerIdentity(host: string, certificate: PeerCertificate): Error | undefined };

/** What the client hands on to Node's TLS. It does not tell Node the address of a server that is given by one, and Node then looks
 *  for "localhost" in the certificate; so it is compared with the addresses that were given. */
export function clientTls(tls: NatsTls, servers: readonly string[]): NatsTls & Identity {
  const names = servers.map((server) => URL.parse(`nats://${server}`)?.hostname.replaceAll(/[[\]]/g, "") ?? "");
  const unnamed = names.filter((name) => name === "localhost" || isIP(name) !== 0);
  return {
    ...tls,
    checkServerIdentity(host, certificate) {
      const wanted = host === "localhost" && unnamed.length > 0 ? unnamed : [host];
      const problems = wanted.map((name) => checkServerIdentity(name, certificate));
      return problems.includes(undefined) ? undefined : problems[0];
    },
  };
}
