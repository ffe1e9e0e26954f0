// Calls as the command line shows them.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import type { CallAttempt, CallDetails, CallRecord } from "../calls/read-calls.ts";
import { plainCell, plainLines, showFields, showTable, showTime, timeCell } from "./show.ts";

const iso = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

export function callJson({ submittedAt, dueAt, startedAt, finishedAt, ...call }: CallRecord): unknown {
  return {
    ...call,
    ...{ submittedAt: iso(submittedAt), dueAt: iso(dueAt), startedAt: iso(startedAt), finishedAt: iso(finishedAt) },
  };
}

export function detailsJson({ attempts, ...call }: CallDetails): unknown {
  return {
    ...(callJson(call) as object),
    attempts: attempts.map(({ startedAt, finishedAt, ...attempt }) => ({
      ...attempt,
      ...{ startedAt: iso(startedAt), finishedAt: iso(finishedAt) },
    })),
  };
}

export async function callTable(calls: readonly CallRecord[]): Promise<string> {
  return showTable(
    ["id", "name", "status", "due", "request", "outcome"],
    calls.map((call) => [
      ...[call.id, plainCell(call.name, 30), call.status, timeCell(call.dueAt)],
      plainCell(`${call.request.method} ${call.request.url}`, 50),
      outcomeWords(call),
    ]),
  );
}

function outcomeWords({ outcome }: CallRecord): string {
  if (outcome === null) return "";
  return plainCell(outcome.error ?? `status ${outcome.responseStatus ?? "?"}`, 50);
}

export async function callPage(call: CallDetails): Promise<string> {
  const { request, policy } = call;
  const fields: [string, string][] = [
    ["call", call.id],
    ["name", plainCell(call.name, 200)],
    ["status", call.status],
    ["request", plainCell(`${request.method} ${request.url}`, 500)],
    ["tags", call.tags.map((tag) => plainCell(tag)).join(", ")],
    ["correlation", plainCell(call.correlationId, 200)],
    ["sends as", call.sendKey],
    ["attempts", `${call.attempts.length} (at most ${policy.attempts}, ${formatDuration(policy.timeoutMs)} each)`],
    ["kept", call.sealed ? "sealed" : "in clear"],
  ];
  if (call.resendOf !== null) fields.push(["again", `of ${call.resendOf}`]);
  const timeline = [
    ["submitted", call.submittedAt],
    ["due", call.dueAt],
    ["started", call.startedAt],
    ["finished", call.finishedAt],
  ] as const;
  for (const [what, at] of timeline) {
    if (at !== null) fields.push([what, `${showTime(at).exact} (${showTime(at).ago})`]);
  }
  return [await showFields(fields), ...call.attempts.map(attemptWords)].join("\n\n");
}

function attemptWords({ number, startedAt, response, error, phases, hops }: CallAttempt): string {
  const parts = [
    ["dns", phases.dnsMs],
    ["connect", phases.connectMs],
    ["tls", phases.tlsMs],
    ["first byte", phases.firstByteMs],
    ["total", phases.totalMs],
  ] as const;
  const took = parts.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${ms.toFixed(1)} ms`]));
  const lines = [
    `Attempt ${number} at ${showTime(startedAt).exact}: ${endWords(response, error)}`,
    ...(took.length === 0 ? [] : [`  ${took.join(", ")}`]),
    ...hops.map((hop) => `  sent on to ${plainCell(hop, 500)}`),
  ];
  if (response?.body != null) {
    const cut = response.truncated ? " (cut)" : "";
    lines.push(`  ${response.bytes} bytes${cut}: ${plainCell(plainLines(response.body), 300)}`);
  }
  return lines.join("\n");
}

function endWords(response: CallAttempt["response"], error: CallAttempt["error"]): string {
  if (error !== null) return `${error.kind}, ${plainCell(error.message, 300)}`;
  return response === null ? "under way" : `answered with ${response.status}`;
}

/** The request as a command for a shell. What is secret is not in it. */
export function curlCommand({ request }: CallRecord): string {
  const headers = Object.entries(request.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const body = request.body === null ? [] : [`--data-raw ${quoted(request.body)}`];
  return ["curl", `-X ${request.method}`, ...headers, ...body, quoted(request.url)].join(" \\\n  ");
}

function quoted(text: string): string {
  return `'${plainLines(text).replaceAll("'", String.raw`'\''`)}'`;
}
