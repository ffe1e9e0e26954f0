// calls submit, cancel, resend, reschedule and delete: requests that are made, and changed.
import type { SubmitOptions } from "../../index.ts";
import { checkUrl } from "../../calls/request/content.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { duration, flag, id, json, list, maybe, text, time, whole, word, type Field } from "../field.ts";
import { headers } from "../headers-field.ts";
import { sentence, time as moment } from "../shown.ts";
import { verb } from "../verb.ts";

const example = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

/** A URL that is refused is not shown, since it may hold a secret. */
const url: Field<string, false> = {
  ...text("where it goes", "url", limits.callUrlBytesMax),
  check: (value) => void checkUrl(typeof value === "string" ? value : undefined),
};

const when = {
  at: maybe(time("not before this time, ISO 8601 with a zone")),
  in: maybe(duration("not before this long from now, such as 5m")),
};

export const make = {
  submit: verb({
    words: "calls submit <url>",
    http: "POST /calls",
    role: "operate",
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
      tags: maybe(list(text("a tag; may be given several times", "tag"), { one: "tag", max: limits.tagsMax })),
      ...when,
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
    check: checkWhen,
    run(book, { jsonBody, retry, ...rest }) {
      const options: SubmitOptions = {
        ...rest,
        ...(jsonBody === undefined ? {} : { json: jsonBody }),
        ...(retry === true ? { retry: "standard" } : {}),
      };
      return book.calls.submit(options);
    },
    show: ({ id: call, created, status, dueAt }) =>
      created ? sentence(`${call} is due`, moment(dueAt)) : `${call} was submitted before: ${status}`,
  }),

  cancel: verb({
    words: "calls cancel <id>",
    http: "POST /calls/{id}/cancel",
    role: "operate",
    about: "cancel a call: one that waits is never sent, one that is being sent is given up",
    input: { id: id("call") },
    examples: [`calls cancel ${example}`],
    run: (book, input) => book.calls.cancel(input.id),
    show: (done) =>
      done.status === "cancelled" ? `${done.id} is cancelled` : `${done.id} is being sent and is given up`,
  }),

  resend: verb({
    words: "calls resend <id>",
    http: "POST /calls/{id}/resend",
    role: "operate",
    about: "send the request of a call that has ended once more, as a new call",
    more: "It sends the same Idempotency-Key, so that a receiver that knows it answers as it did the first time.",
    input: { id: id("call"), ...when, newKey: maybe(flag("with an Idempotency-Key of its own")) },
    examples: [`calls resend ${example}`, `calls resend ${example} --in 5m --new-key`],
    check: checkWhen,
    run: (book, { id: call, ...options }) => book.calls.resend(call, options),
    show: (made) => sentence(`${made.id} sends it again, due`, moment(made.dueAt)),
  }),

  reschedule: verb({
    words: "calls reschedule <id>",
    http: "POST /calls/{id}/reschedule",
    role: "operate",
    about: "give a call that has not started another time",
    input: { id: id("call"), ...when },
    examples: [`calls reschedule ${example} --in 2h`],
    check(input) {
      checkWhen(input);
      if (input.at === undefined && input.in === undefined) throw invalid('no time given: give "at" or "in"');
    },
    run: (book, { id: call, ...to }) => book.calls.reschedule(call, to),
    show: (done) => sentence(`${done.id} is due`, moment(done.dueAt)),
  }),

  delete: verb({
    words: "calls delete <id>",
    http: "DELETE /calls/{id}",
    role: "operate",
    about: "remove a call that has ended, with its tags and attempts",
    more: "A call that has not ended is a conflict (exit code 5).",
    input: { id: id("call") },
    examples: [`calls delete ${example}`],
    async run(book, { id: call }) {
      await book.calls.delete(call);
      return { id: call, deleted: true };
    },
    show: (done) => `${done.id} is gone`,
  }),
};

function checkWhen(input: { readonly at?: string; readonly in?: string }): void {
  if (input.at !== undefined && input.in !== undefined) throw invalid('give "at" or "in", not both');
}
