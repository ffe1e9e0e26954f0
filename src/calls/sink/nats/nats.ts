// nats(): a sink to NATS JetStream. A message is one CloudEvents document (structured mode). The engine keeps order and retries:
// it publishes the next message of a key when the stream has acknowledged the one before.
import { systemClock } from "../../../core/clock.ts";
import { advise } from "../../../core/retry.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import type * as JetStream from "@nats-io/jetstream";
import type * as Transport from "@nats-io/transport-node";
import { DaybookError, describeError, invalid, isDaybookError, type ErrorCode } from "../../../core/error.ts";
import { neverBlamed } from "../../../jobs/settle/settle.ts";
import { cloudEventsJson, type Broker } from "../broker.ts";
import { clientTls, natsSettings, type NatsIdentity, type NatsOptions, type NatsSettings } from "./options.ts";

/** Sends a sink's messages to streams of NATS JetStream.
 *
 *  ```ts
 *  const orders = sink("orders", {
 *    on: "order.>",
 *    to: nats({ servers: "nats://127.0.0.1:4222", subject: "shop.{topic}" }),
 *  });
 *  ``` */
export function nats(options: NatsOptions): { readonly broker: Broker } {
  const settings = natsSettings(options);
  let open: Promise<Connection> | undefined;
  /** Since when no server has answered, by the monotonic clock. */
  let awaySince: number | undefined;

  function connection(): Promise<Connection> {
    if (open !== undefined) return open;
    const mine = connect(settings);
    const forget = (): void => void (open === mine && (open = undefined));
    open = mine;
    mine.then(
      ({ ended }) => {
        awaySince = undefined;
        void ended.then(forget, forget);
      },
      () => {
        awaySince ??= systemClock.monotonic();
        forget();
      },
    );
    return mine;
  }

  async function close(): Promise<void> {
    const mine = open;
    open = undefined;
    const connected = await mine?.catch(() => undefined);
    await connected?.close();
  }

  const broker: Broker = {
    // It runs no user code and its reads are bounded, so a lost process is never blamed on a message.
    losses: neverBlamed,
    async publish(message, { signal, tenant, messageId: id }) {
      const subject = settings.subjectFor(message, tenant);
      const body = JSON.stringify(message);
      let connected: Connection;
      try {
        connected = await until(signal, connection);
      } catch (error) {
        if (signal.aborted || isDaybookError(error)) throw error;
        const now = systemClock.monotonic();
        throw connectFailure(error, settings, now - (awaySince ?? now));
      }
      try {
        await until(signal, () => connected.publish(subject, { id, body }));
      } catch (error) {
        if (signal.aborted) throw error;
        const failed = publishFailure(error, settings, subject);
        // A server that does not answer may be gone: the next publish connects anew.
        if (isDaybookError(failed) && failed.code === "timeout") void close().catch(() => undefined);
        throw failed;
      }
    },
    close,
  };
  return { broker };
}

/** Waits for a promise, unless the run must end first. */
async function until<T>(signal: AbortSignal, start: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const end = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([start(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** How long to wait after a failed connection: about as long as the server has been away, within these bounds. Nothing was sent, so
 *  no attempt is counted: a server that is away for a night must not turn every message into a dead letter. */
const waitMs = { min: 1000, max: 60_000 };

// Errors are recognised by their names, because the client's package may not be installed.
function connectFailure(error: unknown, settings: NatsSettings, awayMs: number): Error {
  const { type, message } = describeError(error);
  if (type === "AuthorizationError" || type === "UserAuthenticationExpiredError") {
    const text = `the NATS server at ${settings.servers.join(", ")} refused us (${message}): check "auth" of nats()`;
    return failure("unauthorized", text, error);
  }
  const atLeastMs = Math.round(Math.min(waitMs.max, Math.max(waitMs.min, awayMs)));
  return advise(failure("unavailable", awayText(error, message, settings), error), { counts: false, atLeastMs });
}

/** The codes of OpenSSL and of Node, such as CERT_HAS_EXPIRED and ERR_TLS_CERT_ALTNAME_INVALID. */
const tlsCode = /CERT|CRL|SIGNATURE|_CA$|HOSTNAME|^ERR_(?:TLS|SSL|OSSL)|^EPROTO$/;

function awayText(error: unknown, message: string, { servers, tls }: NatsSettings): string {
  const where = servers.join(", ");
  // The client reports this only by its text.
  if (message === "server does not support 'tls'") {
    return `the NATS server at ${where} has no TLS, so nothing was said to it: give it a certificate, or correct "tls" of nats()`;
  }
  const code = String(codeOf(error));
  if (tlsCode.test(code)) {
    // OpenSSL's message is a log line; `reason` says what it means.
    const why = Error.isError(error) && "reason" in error ? String(error.reason) : message;
    return `TLS with the NATS server at ${where} failed (${why}): check "tls" of nats(), and the server's certificate`;
  }
  // A server that rejects our certificate closes the connection, and its reason seldom arrives.
  const hint = tls !== undefined && code === "ECONNRESET" ? ', or the cert and key of "tls", which it may want' : "";
  return `no NATS server answers at ${where} (${message}): start it, or correct "servers" of nats()${hint}`;
}

// https://github.com/nats-io/nats-server/blob/main/server/errors.json
const otherStream = 10_060;
const full: readonly unknown[] = [10_047, 10_077, 10_054];

function publishFailure(error: unknown, { stream, timeoutMs }: NatsSettings, subject: string): Error {
  // The client wraps some errors of the server.
  const { type, message } = describeError(Error.isError(error) && error.name === "RequestError" ? error.cause : error);
  const code = codeOf(error);
  if (type === "JetStreamNotEnabled") {
    const text = `no stream takes the subject "${subject}": make one that does, and see that the server has JetStream`;
    return failure("not_found", text, error);
  }
  if (code === otherStream) {
    return failure(
      "invalid",
      `the subject "${subject}" belongs to another stream than "${stream ?? ""}": correct one`,
      error,
    );
  }
  if (full.includes(code)) {
    return failure("full", `the stream of "${subject}" takes no more (${message}): make room in it`, error);
  }
  if (type === "InvalidArgumentError" && message.includes("max_payload")) {
    const text = `the message is too big for the NATS server: raise its max_payload, or say less`;
    // Sending the same message again would fail again.
    return advise(failure("invalid", text, error), { again: false });
  }
  switch (type) {
    case "TimeoutError":
      return failure(
        "timeout",
        `"${subject}" was not acknowledged within ${timeoutMs} ms: it may be in the stream`,
        error,
      );
    case "PermissionViolationError":
      return failure("forbidden", `the NATS server does not let us publish "${subject}": check our permissions`, error);
    default:
      return failure("unavailable", `"${subject}" was not acknowledged: ${message}`, error);
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

function failure(code: ErrorCode, message: string, cause: unknown): DaybookError {
  return new DaybookError(code, message, { cause });
}

type Connection = Awaited<ReturnType<typeof connect>>;

async function connect({ servers, identity, tls, timeoutMs, stream }: NatsSettings) {
  const { transport, jetstream } = await loadClient();
  const options = {
    servers: [...servers],
    timeout: timeoutMs,
    name: "daybook",
    // Only the engine retries. A client that reconnects keeps unsent messages, and would send them after later ones of their key.
    reconnect: false,
    noAsyncTraces: true,
    // A dead connection is given up after two intervals.
    pingInterval: 20_000,
    ...(identity === undefined ? {} : { authenticator: authenticator(transport, identity) }),
    ...(tls === undefined ? {} : { tls: clientTls(tls, servers) }),
  };
  const connection = await closingWhatFails(() => transport.connect(options));
  const streams = jetstream.jetstream(connection, { timeout: timeoutMs });
  return {
    /** Resolves once a stream has it. */
    async publish(subject: string, message: { readonly id: string; readonly body: string }): Promise<void> {
      const headers = transport.headers();
      headers.set("content-type", cloudEventsJson);
      await streams.publish(subject, message.body, {
        msgID: message.id,
        headers,
        timeout: timeoutMs,
        ...(stream === undefined ? {} : { expect: { streamName: stream } }),
      });
    },
    close: () => connection.close(),
    /** Resolves when the connection has ended, for whatever reason. */
    ended: connection.closed(),
  };
}

type Client = { readonly transport: typeof Transport; readonly jetstream: typeof JetStream };

// The client is an optional peer dependency: a program without a NATS sink does not need it.
async function loadClient(): Promise<Client> {
  try {
    const [transport, jetstream] = await Promise.all([import("@nats-io/transport-node"), import("@nats-io/jetstream")]);
    return { transport, jetstream };
  } catch (cause) {
    const names = "@nats-io/transport-node @nats-io/jetstream";
    throw new DaybookError("unavailable", `a sink to NATS needs two packages: npm install ${names}`, { cause });
  }
}

function authenticator(transport: typeof Transport, identity: NatsIdentity): Transport.Authenticator {
  if ("token" in identity) return transport.tokenAuthenticator(identity.token);
  if ("user" in identity) return transport.usernamePasswordAuthenticator(identity.user, identity.password);
  const seed = new TextEncoder().encode(identity.nkey);
  const made = "jwt" in identity ? transport.jwtAuthenticator(identity.jwt, seed) : transport.nkeyAuthenticator(seed);
  try {
    // Checks the seed's checksum now: while connecting, a bad seed would look like a server that is away.
    made("");
  } catch (cause) {
    throw invalid("the seed in auth of nats() is not whole: copy it again", { cause });
  }
  return made;
}

/** Tells the client's sockets from those that other code opens meanwhile. */
const connecting = new AsyncLocalStorage<Set<Socket>>();

// The client gives up on a server that accepts a connection and says nothing, but leaves the socket open. Each try would leave one
// more, and the process could not end. So this notes the sockets that the client opens, and closes them if connecting fails.
async function closingWhatFails<T>(connect: () => Promise<T>): Promise<T> {
  const sockets = new Set<Socket>();
  const note = (message: unknown): void => {
    if (connecting.getStore() !== sockets || typeof message !== "object" || message === null) return;
    if ("socket" in message && message.socket instanceof Socket) sockets.add(message.socket);
  };
  subscribe("net.client.socket", note);
  try {
    return await connecting.run(sockets, connect);
  } catch (error) {
    for (const socket of sockets) socket.destroy();
    throw error;
  } finally {
    unsubscribe("net.client.socket", note);
    sockets.clear();
  }
}
