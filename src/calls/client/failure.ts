// Why a request has no answer, in few words that hold no secret and say nothing about a network's inside.
import { isDaybookError } from "../../core/error.ts";
import type { ErrorKind } from "../call.ts";
import { redirectCode } from "./exchange.ts";

export type Failure = { readonly kind: ErrorKind; readonly message: string };

export function failureOf(error: unknown, signal: AbortSignal, host: string): Failure {
  if (signal.aborted) return aborted(signal.reason);
  if (isDaybookError(error)) {
    if (error.code === "forbidden") return { kind: "refused", message: error.message };
    if (error.details["kind"] === redirectCode) return { kind: "redirect", message: error.message };
  }
  const code = codeOf(error);
  const kind = kindOf(code);
  return { kind, message: `${words[kind]} ${host}${code === "" ? "" : ` (${code})`}` };
}

/** For the operator: why a destination was refused. */
export function reasonOf(error: unknown): string | undefined {
  if (!isDaybookError(error) || error.code !== "forbidden") return undefined;
  const reason = error.details["reason"];
  return typeof reason === "string" ? reason : undefined;
}

const words: Readonly<Partial<Record<ErrorKind, string>>> = {
  dns: "the name could not be resolved:",
  connect: "no connection to",
  tls: "no secure connection to",
  reset: "the connection was closed by",
  protocol: "the answer is no valid HTTP, or too long, from",
  internal: "the request failed to",
};

function aborted(reason: unknown): Failure {
  const cause = isDaybookError(reason) ? reason.details["cause"] : undefined;
  const message = isDaybookError(reason) ? reason.message : "it was given up";
  if (cause === "timeout") return { kind: "timeout", message: "there was no complete answer within the timeout" };
  if (cause === "cancel") return { kind: "cancelled", message };
  return { kind: cause === "lost" ? "lost" : "shutdown", message };
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (!Error.isError(error)) return "";
  const code: unknown = Reflect.get(error, "code");
  if (typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code)) return code;
  // What is no HTTP at all has no code.
  return error.name === "HTTPParserError" ? "HPE_INVALID" : "";
}

function kindOf(code: string): ErrorKind {
  if (code === "ENOTFOUND" || code.startsWith("EAI_") || code === "ENODATA") return "dns";
  if (connectCodes.has(code)) return "connect";
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_|ERR_OSSL|EPROTO)/.test(code)) return "tls";
  if (code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_SOCKET" || code === "ECONNABORTED") return "reset";
  if (/^(?:HPE_|UND_ERR_|Z_|ERR_|ERR__)/.test(code)) return "protocol";
  return "internal";
}

const connectCodes: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT", "EADDRNOTAVAIL"],
  ...["EHOSTDOWN", "ENETDOWN", "EACCES"],
]);
