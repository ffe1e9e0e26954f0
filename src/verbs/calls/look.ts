// calls list, show, explain and curl: what there is to know about calls.
import type { CallAttempt, CallDetails, CallRecord } from "../../index.ts";
import { formatDuration } from "../../core/duration.ts";
import { paged } from "../cursor.ts";
import { id, list, maybe, page, text, word } from "../field.ts";
import { bytes, fields, id as copied, lines, row, section, status as state, table, time, type Part } from "../shown.ts";
import { verb } from "../verb.ts";

const statuses = ["scheduled", "running", "succeeded", "failed", "cancelled"] as const;
const example = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

export const look = {
  list: verb({
    words: "calls list",
    http: "GET /calls",
    role: "read",
    about: "list calls, newest first",
    input: {
      status: maybe(list(word("only calls in these states", statuses))),
      tag: maybe(text("only calls with this tag", "tag")),
      host: maybe(text('only calls to this host, as in the URL: "api.example.com", "localhost:8080"', "host")),
      name: maybe(text("only calls of this name", "name")),
      correlationId: maybe(text("only calls with this correlation id", "id")),
      ...page,
    },
    examples: ["calls list --status failed,cancelled --tag billing"],
    run: (book, input) => paged(book, "calls", input, (filter) => book.calls.list(filter)),
    show: ({ items }) =>
      table(items, callColumns, {
        none: "There are no such calls, or none before that cursor.",
        least: ["name", "due"],
      }),
  }),

  show: verb({
    words: "calls show <id>",
    http: "GET /calls/{id}",
    role: "read",
    about: "show a call with its timeline, its attempts and what they were answered",
    more: "What is secret in the request is not shown.",
    input: { id: id("call") },
    examples: [`calls show ${example}`],
    run: (book, input) => book.calls.get(input.id),
    show: callPage,
  }),

  explain: verb({
    words: "calls explain <id>",
    http: "GET /calls/{id}/explanation",
    role: "read",
    about: "say why a call has not been sent, or what became of it",
    input: { id: id("call") },
    examples: [`calls explain ${example}`],
    run: (book, input) => book.calls.explain(input.id),
    show: ({ status, reason, because }) => [reason === status ? status : `${status}: ${reason}`, ...because],
  }),

  curl: verb({
    words: "calls curl <id>",
    http: "GET /calls/{id}/curl",
    role: "read",
    about: "print the request of a call as a curl command, without what is secret in it",
    more: "What is secret is left out: put it back in where it says [redacted].",
    input: { id: id("call") },
    examples: [`calls curl ${example}`],
    run: async (book, { id: wanted }) => ({ id: wanted, curl: curlOf(await book.calls.get(wanted)) }),
    show: ({ curl }) => lines(curl),
  }),
};

const callColumns = {
  id: (call: CallRecord) => copied(call.id),
  name: (call: CallRecord) => call.name,
  status: (call: CallRecord) => state(call.status),
  due: (call: CallRecord) => time(call.dueAt),
  request: (call: CallRecord) => `${call.request.method} ${call.request.url}`,
  outcome: ({ outcome }: CallRecord) =>
    outcome === null ? null : (outcome.error ?? `status ${outcome.responseStatus ?? "?"}`),
};

function callPage(call: CallDetails): Part[] {
  const { request, policy } = call;
  const facts = fields({
    call: copied(call.id),
    name: call.name,
    status: state(call.status),
    request: `${request.method} ${request.url}`,
    tags: call.tags.length === 0 ? null : call.tags.join(", "),
    correlation: copied(call.correlationId),
    "idempotency key": call.idempotencyKey,
    "sends as": copied(call.sendKey),
    attempts: `${call.attempts.length} (at most ${policy.attempts}, ${formatDuration(policy.timeoutMs)} each)`,
    kept: call.sealed ? "sealed" : "in clear",
    "again of": copied(call.resendOf),
    submitted: time(call.submittedAt),
    due: time(call.dueAt),
    started: time(call.startedAt),
    finished: time(call.finishedAt),
  });
  return [facts, ...call.attempts.map(attemptPart)];
}

function attemptPart({ number, startedAt, response, error, phases, hops }: CallAttempt): Part {
  const took = [
    ["dns", phases.dnsMs],
    ["connect", phases.connectMs],
    ["tls", phases.tlsMs],
    ["first byte", phases.firstByteMs],
    ["total", phases.totalMs],
  ] as const;
  const measured = took.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${ms.toFixed(1)} ms`]));
  const facts = fields({
    at: time(startedAt),
    outcome: outcomeOf(response, error),
    took: measured.length === 0 ? null : measured.join(", "),
    "sent on to": hops.length === 0 ? null : hops.join(", "),
    answer: response === null ? null : `${bytes(response.bytes)}${response.truncated ? ", not all of it kept" : ""}`,
  });
  // A body may be long, so it is one line that gives way to the width of the terminal.
  return section(`attempt ${number}`, facts, ...(response?.body == null ? [] : [row(response.body)]));
}

function outcomeOf(response: CallAttempt["response"], error: CallAttempt["error"]): string {
  if (error !== null) return `${error.kind}, ${error.message}`;
  return response === null ? "under way" : `answered with ${response.status}`;
}

/** The request as a command for a shell. What is secret is not in it. */
function curlOf({ request }: CallRecord): string {
  const given = Object.entries(request.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const body = request.body === null ? [] : [`--data-raw ${quoted(request.body)}`];
  return ["curl", `-X ${request.method}`, ...given, ...body, quoted(request.url)].join(" \\\n  ");
}

function quoted(given: string): string {
  return `'${given.replaceAll("'", String.raw`'\''`)}'`;
}
