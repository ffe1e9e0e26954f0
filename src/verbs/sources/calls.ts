// calls: HTTP requests that will be, or were, made.
import type { CallAttempt, CallDetails, CallRecord, SubmitOptions } from "../../index.ts";
import { checkUrl } from "../../calls/request/content.ts";
import { formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { paged } from "../list.ts";
import { duration, flag, id, json, list, maybe, text, whole, word, type Field } from "../field.ts";
import { checkDue, due, exampleId, headers, tags } from "../shared-fields.ts";
import { bytes, copied, fields, lines, row, section, sentence, state, when, type Part } from "../shown.ts";
import { operate, read } from "../verb.ts";

/** A URL that is refused is not shown, since it may hold a secret. */
const url: Field<string, false> = {
  ...text("where it goes", "url", limits.callUrlBytesMax),
  check: (value) => void checkUrl(typeof value === "string" ? value : undefined),
};

const statuses = ["scheduled", "running", "succeeded", "failed", "cancelled"] as const;

const callColumns = {
  id: (call: CallRecord) => copied(call.id),
  name: (call: CallRecord) => call.name,
  status: (call: CallRecord) => state(call.status),
  due: (call: CallRecord) => when(call.dueAt),
  request: (call: CallRecord) => `${call.request.method} ${call.request.url}`,
  outcome: ({ outcome }: CallRecord) =>
    outcome === null ? null : (outcome.error ?? `status ${outcome.responseStatus ?? "?"}`),
};

export const calls = {
  list: paged({
    words: "calls list",
    http: "GET /calls",
    about: "list calls, newest first",
    input: {
      status: maybe(list(word("only calls in these states", statuses))),
      tag: maybe(text("only calls with this tag", "tag")),
      host: maybe(text('only calls to this host, as in the URL: "api.example.com", "localhost:8080"', "host")),
      name: maybe(text("only calls of this name", "name")),
      correlationId: maybe(text("only calls with this correlation id", "id")),
    },
    examples: ["calls list --status failed,cancelled --tag billing"],
    find: (book, filter) => book.calls.list(filter),
    columns: callColumns,
    none: "There are no such calls, or none before that cursor.",
    least: ["name", "due"],
  }),

  show: read({
    words: "calls show <id>",
    http: "GET /calls/{id}",
    about: "show a call with its timeline, its attempts and what they were answered",
    more: "What is secret in the request is not shown.",
    input: { id: id("call") },
    examples: [`calls show ${exampleId}`],
    run: (book, input) => book.calls.get(input.id),
    show: callPage,
  }),

  explain: read({
    words: "calls explain <id>",
    http: "GET /calls/{id}/explanation",
    about: "say why a call has not been sent, or what became of it",
    input: { id: id("call") },
    examples: [`calls explain ${exampleId}`],
    run: (book, input) => book.calls.explain(input.id),
    show: ({ status, reason, because }) => [reason === status ? status : `${status}: ${reason}`, ...because],
  }),

  curl: read({
    words: "calls curl <id>",
    http: "GET /calls/{id}/curl",
    about: "print the request of a call as a curl command, without what is secret in it",
    more: "What is secret is left out: put it back in where it says [redacted].",
    input: { id: id("call") },
    examples: [`calls curl ${exampleId}`],
    run: async (book, { id: wanted }) => ({ id: wanted, curl: curlOf(await book.calls.get(wanted)) }),
    show: ({ curl }) => lines(curl),
  }),

  submit: operate({
    words: "calls submit <url>",
    http: "POST /calls",
    about: "submit a call: an HTTP request that will be sent, now or later",
    more: `Headers and fields that hold secrets are kept sealed with the key in DAYBOOK_KEY; without it they are
refused. With an idempotency key, the same request again is the same call, and another one is a conflict
(exit code 5).`,
    input: {
      url,
      method: maybe(word("default: GET, or POST with a body", ["GET", "POST", "PUT", "DELETE", "PATCH"])),
      headers: maybe(
        headers('a header, such as "accept: application/json"; may be given several times', limits.callHeadersMax),
      ),
      jsonBody: maybe(json("the body as JSON")),
      name: maybe(text("what people call it (default: its method and host)", "name")),
      tags: tags("the call"),
      ...due,
      idempotencyKey: maybe(text("the same key and request again give the same call", "key")),
      correlationId: maybe(text("what it belongs to (default: the id of the call)", "id")),
      attempts: maybe(whole("how often it may be sent in total (default: 1, or 8 with --retry)", 1, 1000)),
      retry: maybe(flag("try again after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and 10 h")),
      timeout: maybe(duration("how long one attempt may take (default: 30s)", { min: 1 })),
    },
    examples: [
      `calls submit https://stock.example/reserve --json-body '{"orderId": "o-17"}' --in 5m --tag stock`,
      "calls submit https://stock.example/reserve --method PUT --json-body @order.json --idempotency-key o-17",
    ],
    check: checkDue,
    run(book, { jsonBody, retry, ...rest }) {
      const options: SubmitOptions = {
        ...rest,
        ...(jsonBody === undefined ? {} : { json: jsonBody }),
        ...(retry === true ? { retry: "standard" } : {}),
      };
      return book.calls.submit(options);
    },
    show: ({ id: call, created, status, dueAt }) =>
      created ? sentence(`${call} is due`, when(dueAt)) : `${call} was submitted before: ${status}`,
  }),

  cancel: operate({
    words: "calls cancel <id>",
    http: "POST /calls/{id}/cancel",
    about: "cancel a call: one that waits is never sent, one that is being sent is given up",
    input: { id: id("call") },
    examples: [`calls cancel ${exampleId}`],
    run: (book, input) => book.calls.cancel(input.id),
    show: (done) =>
      done.status === "cancelled" ? `${done.id} is cancelled` : `${done.id} is being sent and is given up`,
  }),

  resend: operate({
    words: "calls resend <id>",
    http: "POST /calls/{id}/resend",
    about: "send the request of a call that has ended once more, as a new call",
    more: "It sends the same Idempotency-Key, so that a receiver that knows it answers as it did the first time.",
    input: { id: id("call"), ...due, newKey: maybe(flag("with an Idempotency-Key of its own")) },
    examples: [`calls resend ${exampleId}`, `calls resend ${exampleId} --in 5m --new-key`],
    check: checkDue,
    run: (book, { id: call, ...options }) => book.calls.resend(call, options),
    show: (made) => sentence(`${made.id} sends it again, due`, when(made.dueAt)),
  }),

  reschedule: operate({
    words: "calls reschedule <id>",
    http: "POST /calls/{id}/reschedule",
    about: "give a call that has not started another time",
    input: { id: id("call"), ...due },
    examples: [`calls reschedule ${exampleId} --in 2h`],
    check(input) {
      checkDue(input);
      if (input.at === undefined && input.in === undefined) throw invalid('no time given: give "at" or "in"');
    },
    run: (book, { id: call, ...to }) => book.calls.reschedule(call, to),
    show: (done) => sentence(`${done.id} is due`, when(done.dueAt)),
  }),

  delete: operate({
    words: "calls delete <id>",
    http: "DELETE /calls/{id}",
    about: "remove a call that has ended, with its tags and attempts",
    more: "A call that has not ended is a conflict (exit code 5).",
    input: { id: id("call") },
    examples: [`calls delete ${exampleId}`],
    async run(book, { id: call }) {
      await book.calls.delete(call);
      return { id: call, deleted: true };
    },
    show: (done) => `${done.id} is gone`,
  }),
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
    submitted: when(call.submittedAt),
    due: when(call.dueAt),
    started: when(call.startedAt),
    finished: when(call.finishedAt),
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
    at: when(startedAt),
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
