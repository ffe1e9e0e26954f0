// nats({ … }): what is given, checked before anything connects.
import { durationMs, type Duration } from "../../../core/duration.ts";
import { invalid } from "../../../core/error.ts";
import { quote } from "../../../core/quote.ts";
import { refuseUnknown } from "../../../core/suggest.ts";
import type { CloudEvent } from "../message.ts";
import { natsIdentity, type NatsAuth, type NatsIdentity } from "./auth.ts";
import { tlsSettings, type NatsTls } from "./tls.ts";

export type NatsOptions = {
  /** Such as `"nats://127.0.0.1:4222"`, or several servers of one cluster; with `tls://` only by TLS. */
  readonly servers: string | readonly string[];
  /** The subject of a message: a text in which `{topic}` and `{tenant}` stand for those of the event, or a function; default
   *  `"{topic}"`. A stream must take it. */
  readonly subject?: string | ((message: CloudEvent, of: { readonly tenant: string }) => string);
  /** The name of the stream that must be the one that takes it; else it is refused. */
  readonly stream?: string;
  readonly auth?: NatsAuth;
  /** True: only by TLS; or with certificates of your own, in PEM. */
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
    ...{ stream, timeoutMs: durationMs(timeout, "nats timeout", { min: 1 }) },
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
      // It may hold a password, and then it is not shown.
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

/** A message has one subject, so the words of a pattern have no place in it. */
function checkSubject(subject: string): string {
  const isSubject = typeof subject === "string" && !/[\s*>\p{Cc}]/u.test(subject) && !subject.split(".").includes("");
  if (isSubject) return subject;
  throw invalid(`nats subject ${quote(subject)} is none: words between dots, without white space, "*" and ">"`);
}
