// What a server refuses, as the error that the library would throw.
import { DaybookError, errorCodes, type ErrorCode } from "../core/daybook-error.ts";

/** What an answer says that is none: a problem of ours, or whatever a proxy in between has to say. */
export async function problemOf(response: Response, base: string): Promise<DaybookError> {
  const { status, type, headers } = response;
  // A browser shows nothing of it.
  if (type === "opaqueredirect" || (status >= 300 && status < 400)) {
    const to = headers.get("location") ?? "another address";
    return new DaybookError("unavailable", `${base} sends us on to ${to}: connect to it there`, {
      details: { status },
    });
  }
  const text = await response.text().catch(() => "");
  const said = text.slice(0, saidMax).trim();
  return problemIn(text, `the server answered ${status}${said === "" ? "" : `: ${said}`}`, status);
}

/** A page that logs in, or a server of something else. */
export function parseReply(
  base: string,
  { status, text }: { readonly status: number; readonly text: string },
): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const said = text.slice(0, saidMax).trim();
    const message = `${base} does not answer as a server of Daybook does: is that its address? It says ${JSON.stringify(said)}`;
    throw new DaybookError("unavailable", message, { cause, details: { status } });
  }
}

/** Where the text is no problem, the error says `otherwise`. */
export function problemIn(text: string, otherwise: string, status = 500): DaybookError {
  const { code, detail, details, status: own = status } = readProblem(text);
  if (!isCode(code) || typeof detail !== "string")
    return new DaybookError(codeOf(status), otherwise, { details: { status } });
  const known = typeof details === "object" && details !== null ? details : {};
  return new DaybookError(code, detail, { details: { ...known, status: own } });
}

/** Of a page that is no problem of ours, enough to know who wrote it. */
const saidMax = 200;

function readProblem(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(errorCodes, code);
}

/** A server in between knows no codes. */
function codeOf(status: number): ErrorCode {
  if (status === 429 || status === 502 || status === 503) return "unavailable";
  const found = Object.entries(errorCodes).find(([, each]) => each.status === status);
  if (found !== undefined) return found[0] as ErrorCode;
  return status < 500 ? "invalid" : "internal";
}
