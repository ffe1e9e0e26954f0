// calls: HTTP requests that will be, or were, made.
import type { CallAttempt, CallDetails, CallRecord, Kept, KeptAnswer, SubmitOptions } from "../../index.ts";
import { checkUrl } from "../../calls/request/content.ts";
import { formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { paged } from "../list.ts";
import { duration, flag, id, json, list, maybe, text, whole, word, type Field } from "../field.ts";
import { applying, checkDue, due, headers, tags } from "../shared-fields.ts";
import { bytes, copied, fields, lines, row, section, sentence, state, when, type Part } from "../shown.ts";
import { admin, exampleId, operate, read } from "../verb.ts";

/** A URL that is refused is not shown, since it may hold a secret. */
const url: Field<string, false> = {
  ...text("where it goes", "url", limits.callUrlBytesMax),
  check: (value) => void checkUrl(typeof value === "string" ? value : undefined),
};

const statuses = ["scheduled", "running", "succeeded", "failed", "cancelled"] as const;

export const calls = {
  list: paged({
    words: "calls list",
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
    columns: {
      id: (call) => copied(call.id),
      name: (call) => call.name,
      status: (call) => state(call.status),
      due: (call) => when(call.dueAt),
      request: (call) => `${call.request.method} ${call.request.url}`,
      outcome: ({ outcome }) =>
        outcome === null ? null : (outcome.error ?? `status ${outcome.responseStatus ?? "?"}`),
    },
    none: "There are no such calls, or none before that cursor.",
    least: ["name", "due"],
  }),

  show: read({
    words: "calls show <id>",
    about: "show a call with its timeline, its attempts and what they were answered",
    more: `It shows where the call went, when, and how it ended. What was said (the path, the body, most headers, and the
answer) is not shown: see "calls reveal".`,
    input: { id: id("call") },
    run: (book, input) => book.calls.get(input.id),
    show: callPage,
  }),

  reveal: admin({
    words: "calls reveal <id>",
    about: "show a call with everything that was sent and came back, secrets included",
    more: `What is sealed is opened with the key in DAYBOOK_KEY. The secrets that sign a request are not shown. A call that
might have a secret and was submitted without a key keeps nothing of this once it has ended.`,
    needs: "read",
    input: { id: id("call") },
    run: (book, input) => book.calls.get(input.id, { reveal: true }),
    show: callPage,
  }),

  explain: read({
    words: "calls explain <id>",
    http: "GET /calls/{id}/explanation",
    about: "say why a call has not been sent, or what became of it",
    input: { id: id("call") },
    run: (book, input) => book.calls.explain(input.id),
    show: ({ status, reason, because }) => [reason === status ? status : `${status}: ${reason}`, ...because],
  }),

  curl: admin({
    words: "calls curl <id>",
    about: "print the request of a call as a curl command, secrets included",
    more: `What is sealed is opened with the key in DAYBOOK_KEY. A body of bytes, and the secrets that sign a request, are left
out. What is no longer kept stands as [hidden].`,
    needs: "read",
    input: { id: id("call") },
    run: async (book, { id: wanted }) => ({ id: wanted, curl: curlOf(await book.calls.get(wanted, { reveal: true })) }),
    show: ({ curl }) => lines(curl),
  }),

  submit: operate({
    words: "calls submit <url>",
    http: "POST /calls",
    about: "submit a call: an HTTP request that will be sent, now or later",
    more: `The request is kept sealed with the key in DAYBOOK_KEY. Without it, headers that hold secrets are refused, and
of a call that may hold another secret nothing is kept once it has ended. With an idempotency key, the same request again is the same call, and another one is a conflict
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
    about: "cancel a call: one that waits is never sent, one that is being sent is given up",
    input: { id: id("call") },
    run: (book, input) => book.calls.cancel(input.id),
    show: (done) =>
      done.status === "cancelled" ? `${done.id} is cancelled` : `${done.id} is being sent and is given up`,
  }),

  resend: operate({
    words: "calls resend <id>",
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
    destroys: true,
    about: "remove a call that has ended, with its tags and attempts",
    more: `It says whether the call would be removed, and removes it with --apply. A call that has not ended is then a
conflict (exit code 5).`,
    input: { id: id("call"), ...applying },
    examples: [`calls delete ${exampleId} --apply`],
    async run(book, { id: call, apply = false }) {
      const { finishedAt } = await book.calls.get(call);
      if (apply) await book.calls.delete(call);
      return { id: call, dryRun: !apply, count: finishedAt === null ? 0 : 1 };
    },
    show({ id: call, dryRun, count }) {
      if (count === 0) return `${call} has not ended, so it cannot be removed`;
      return dryRun ? `${call} would be removed; remove it with --apply` : `${call} is gone`;
    },
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
    kept: keptWords[call.kept],
    "again of": copied(call.resendOf),
    submitted: when(call.submittedAt),
    due: when(call.dueAt),
    started: when(call.startedAt),
    finished: when(call.finishedAt),
  });
  return [facts, section("request", ...saidParts(request)), ...call.attempts.map(attemptPart)];
}

const keptWords: Readonly<Record<Kept, string>> = {
  sealed: "sealed",
  clear: "in clear",
  until_ended: "until it has ended, because it may hold a secret and there was no key",
};

function attemptPart({ number, startedAt, response, error, phases }: CallAttempt): Part {
  const said = response?.said ?? null;
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
    "sent on to": said === null || said.hops.length === 0 ? null : said.hops.join(", "),
    answer: response === null ? null : `${bytes(response.bytes)}${response.truncated ? ", not all of it kept" : ""}`,
  });
  return section(`attempt ${number}`, facts, ...(said === null ? [] : saidParts(said)));
}

function saidParts({ headers, body }: Pick<KeptAnswer, "headers" | "body">): Part[] {
  // A body may be long, so it is one line that gives way to the width of the terminal.
  const said = [
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [body]),
  ];
  return said.map((line) => row(line));
}

function outcomeOf(response: CallAttempt["response"], error: CallAttempt["error"]): string {
  if (error !== null) return `${error.kind}, ${error.message}`;
  return response === null ? "under way" : `answered with ${response.status}`;
}

/** The request as a command for a shell. */
function curlOf({ request }: CallRecord): string {
  const given = Object.entries(request.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const body = request.body === null || request.base64 ? [] : [`--data-raw ${quoted(request.body)}`];
  return ["curl", `-X ${request.method}`, ...given, ...body, quoted(request.url)].join(" \\\n  ");
}

function quoted(given: string): string {
  return `'${given.replaceAll("'", String.raw`'\''`)}'`;
}
