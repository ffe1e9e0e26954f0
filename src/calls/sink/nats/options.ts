// nats({ … }): its options, checked before anything connects. No message shows a secret.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type PeerCertificate } from "node:tls";
import { durationMs, type Duration } from "../../../core/duration.ts";
import { invalid } from "../../../core/error.ts";
import { quote } from "../../../core/quote.ts";
import { refuseUnknown } from "../../../core/suggest.ts";
import type { CloudEvent } from "../broker.ts";

export type NatsOptions = {
  /** Such as `"nats://127.0.0.1:4222"`, or several servers of one cluster; `tls://` demands TLS. */
  readonly servers: string | readonly string[];
  /** The subject of a message: a text with `{topic}` and `{tenant}` as placeholders, or a function; default `"{topic}"`. A stream must
   *  accept it. */
  readonly subject?: string | ((message: CloudEvent, of: { readonly tenant: string }) => string);
  /** The stream that must accept the subject; a message for another stream is refused. */
  readonly stream?: string;
  readonly auth?: NatsAuth;
  /** True demands TLS; or give your own certificates, in PEM. */
  readonly tls?: boolean | NatsTls;
  /** How long connecting, and then the acknowledgement of a message, may take; default 10 s. */
  readonly timeout?: Duration;
};

export type NatsSettings = {
  readonly servers: readonly string[];
  subjectFor(message: CloudEvent, tenant: string): string;
  readonly stream: string | undefined;
  readonly identity: NatsIdentity | undefined;
  readonly tls: NatsTls | undefined;
  readonly timeoutMs: number;
};

const known: readonly (keyof NatsOptions)[] = ["servers", "subject", "stream", "auth", "tls", "timeout"];

export function natsSettings(options: NatsOptions): NatsSettings {
  refuseUnknown(options, known, "nats");
  const { subject = "{topic}", stream, auth, tls, timeout = "10s" } = options;
  if (stream !== undefined && !/^[^\s.*>/\\]+$/.test(stream)) {
    throw invalid(`nats stream ${quote(stream)} is none: a name without white space, dots, "*", ">" and slashes`);
  }
  if (typeof subject !== "function") checkPlaces(subject);
  const servers = checkServers(options.servers);
  return {
    servers: servers.map(({ host }) => host),
    subjectFor: (message, tenant) =>
      checkSubject(
        typeof subject === "function"
          ? subject(message, { tenant })
          : subject.replaceAll("{topic}", () => message.type).replaceAll("{tenant}", () => tenant),
      ),
    stream,
    timeoutMs: durationMs(timeout, "nats timeout", { min: 1 }),
    identity: auth === undefined ? undefined : natsIdentity(auth),
    tls: tlsSettings(
      tls,
      servers.some(({ protocol }) => protocol === "tls:"),
    ),
  };
}

function checkServers(given: unknown): readonly URL[] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (all.length === 0) throw invalid('nats has no servers: give one, such as "nats://127.0.0.1:4222"');
  return all.map((each) => {
    const url = typeof each === "string" ? URL.parse(each.includes("://") ? each : `nats://${each}`) : null;
    if (url === null || !/^(?:nats|tls):$/.test(url.protocol) || url.hostname === "") {
      // It may hold a password, so it is not shown.
      const shown = typeof each === "string" && each.includes("@") ? "with a user name" : quote(each);
      throw invalid(`nats server ${shown} cannot be read: write "nats://host:port"`);
    }
    if (url.username !== "" || url.password !== "") {
      throw invalid("a nats server has a user name in its URL, which is shown in errors: give it as auth");
    }
    return url;
  });
}

function checkPlaces(subject: string): void {
  const unknown = /\{(?!topic\}|tenant\})[^}]*\}?/.exec(typeof subject === "string" ? subject : "{}");
  if (unknown !== null) {
    throw invalid(
      `nats subject ${quote(subject)} has ${quote(unknown[0])}: {topic} and {tenant} are filled in; or give a function`,
    );
  }
  checkSubject(subject.replaceAll(/\{(?:topic|tenant)\}/g, "x"));
}

/** A message has one subject, so wildcards are refused. */
function checkSubject(subject: string): string {
  const isSubject = typeof subject === "string" && !/[\s*>\p{Cc}]/u.test(subject) && !subject.split(".").includes("");
  if (isSubject) return subject;
  throw invalid(`nats subject ${quote(subject)} is none: words between dots, without white space, "*" and ">"`);
}

/** How we authenticate. A secret belongs here and not in the URL, which errors show. */
export type NatsAuth =
  | { readonly token: string }
  | { readonly user: string; readonly password: string }
  /** The seed of an nkey. */
  | { readonly nkey: string }
  /** The text of a credentials file, of decentralised accounts. */
  | { readonly credentials: string };

/** The same for the client: a credentials file is a JWT and the seed that proves it. */
export type NatsIdentity = Exclude<NatsAuth, { credentials: string }> | { readonly jwt: string; readonly nkey: string };

const ways: readonly (readonly string[])[] = [["token"], ["user", "password"], ["nkey"], ["credentials"]];

function natsIdentity(auth: NatsAuth): NatsIdentity {
  const given = Object.entries(auth);
  refuseUnknown(auth, ways.flat(), "nats.auth");
  const isWay = ways.some((way) => way.length === given.length && way.every((name) => name in auth));
  if (!isWay || given.some(([, value]) => typeof value !== "string" || value === "")) {
    throw invalid(
      "nats auth is { token }, { user, password }, { nkey } or { credentials }, each a text that is not empty",
    );
  }
  if ("nkey" in auth) {
    return {
      nkey: seedOf(auth.nkey, 'nats auth.nkey is no seed of a user: 58 letters and digits that begin with "SU"'),
    };
  }
  return "credentials" in auth ? readCredentials(auth.credentials) : auth;
}

/** What is between two lines of dashes, as the tools of NATS write it, with any line ends. */
const part = /-{3,}[^\r\n]*-{3,}\s+(\S+)\s+-{3,}[^\r\n]*-{3,}/g;

function readCredentials(text: string): NatsIdentity {
  const [jwt = "", seed = ""] = text.matchAll(part).map(([, inner = ""]) => inner);
  const what = "nats auth.credentials has no JWT and seed of a user: give the text of the file, not its name";
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(jwt)) throw invalid(what);
  return { jwt, nkey: seedOf(seed, what) };
}

/** A seed from a file often ends with a line break. */
function seedOf(text: string, otherwise: string): string {
  const seed = text.trim();
  if (/^SU[A-Z2-7]{56}$/.test(seed)) return seed;
  throw invalid(otherwise);
}

/** Your own certificates, in PEM: `ca` verifies the server, `cert` and `key` identify us. */
export type NatsTls = { readonly ca?: string; readonly cert?: string; readonly key?: string };

/** @param demanded A server is given as "tls://…". */
function tlsSettings(given: boolean | NatsTls | undefined, demanded: boolean): NatsTls | undefined {
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
  // Node would take a text without a certificate for an empty list.
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

/** What the client passes to Node's TLS. For a server given by its address the client names no host, and Node would look for
 *  "localhost" in the certificate; so this compares the certificate with the given addresses. */
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
