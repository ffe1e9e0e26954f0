// Why a message did not get into a stream, in words that say what to do. Errors are known by their names: the client is a package
// that need not be there.
import { DaybookError, describeError, type ErrorCode } from "../../../core/error.ts";
import { advise } from "../../../jobs/advice.ts";
import type { NatsSettings } from "./options.ts";

/** Nothing was sent, so no attempt is counted: a server that is away for a night must not turn every message into a dead letter.
 *  Each waits about as long as the server has been away, within these bounds. */
const waitMs = { min: 1000, max: 60_000 };

export function connectFailure(error: unknown, settings: NatsSettings, awayMs: number): Error {
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
  // Of this the client says no more than the words.
  if (message === "server does not support 'tls'") {
    return `the NATS server at ${where} has no TLS, so nothing was said to it: give it a certificate, or correct "tls" of nats()`;
  }
  const code = String(codeOf(error));
  if (tlsCode.test(code)) {
    // What OpenSSL says is a line of its own log; what it means by it stands beside.
    const why = Error.isError(error) && "reason" in error ? String(error.reason) : message;
    return `TLS with the NATS server at ${where} failed (${why}): check "tls" of nats(), and the server's certificate`;
  }
  // A server that wants another certificate of ours ends the connection, and mostly its reason does not get here.
  const hint = tls !== undefined && code === "ECONNRESET" ? ', or the cert and key of "tls", which it may want' : "";
  return `no NATS server answers at ${where} (${message}): start it, or correct "servers" of nats()${hint}`;
}

// https://github.com/nats-io/nats-server/blob/main/server/errors.json
const otherStream = 10_060;
const full: readonly unknown[] = [10_047, 10_077, 10_054];

export function publishFailure(error: unknown, { stream, timeoutMs }: NatsSettings, subject: string): Error {
  // The client wraps some of what it is told.
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
    // The same again would fail in the same way.
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
