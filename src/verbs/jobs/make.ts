// jobs enqueue and run-now: work that is made.
import type { Enqueued, EnqueueOptions } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { duration, flag, json, list, maybe, text, time, whole, word, wordOrDuration } from "../field.ts";
import { json as asJson } from "../shown.ts";
import { verb } from "../verb.ts";

export const make = {
  enqueue: verb({
    words: "jobs enqueue [name]",
    http: "POST /jobs",
    role: "operate",
    definitions: "may",
    definitionsOf: ({ name }) => (name === undefined ? [] : [name]),
    about: "make a job, by the name of its definition or from a template",
    more: `A job that no file here declares gets the settings that the program which runs it wrote to the book
(queue, priority, attempts, timeout, limits), and its params are checked by the schema that is there. A
name that no program has hosted yet gets the defaults, and the answer says so. From a template, the
params are laid over its defaults, and its settings hold where no option is given.`,
    input: {
      name: maybe(text("the name of the job, unless a template is given", "name")),
      template: maybe(text("make it from this template", "name")),
      params: maybe(json("the params as JSON")),
      queue: maybe(text("the queue (default: that of its definition)", "queue")),
      priority: maybe(
        whole(
          "from -1000 to 1000, higher runs first (default: that of its definition)",
          -limits.priorityMax,
          limits.priorityMax,
        ),
      ),
      at: maybe(time("not before this time, ISO 8601 with a zone")),
      in: maybe(duration("not before this long from now: 30s, 5m, 1h30m, 7d")),
      key: maybe(text("at most one job of this name and key at a time", "key")),
      keyScope: maybe(wordOrDuration('how long the key is taken (default: "done")', ["queued", "done"])),
      onConflict: maybe(word("when the key is taken (default: keep)", ["keep", "replace", "error"])),
      idempotencyKey: maybe(text("the same key and params again give the same job", "key")),
      tags: maybe(list(text("a tag; may be given several times", "tag"), { one: "tag", max: limits.tagsMax })),
      attempts: maybe(whole("how often it may be tried in total (default: as its definition says)", 1, 1000)),
      timeout: maybe(duration("how long one run may take", { min: 1 })),
    },
    examples: [
      `jobs enqueue send-receipt --params '{"orderId": "o-17"}' --key o-17`,
      "jobs enqueue sum-orders --params @month.json --at 2026-12-01T06:00:00Z",
      `jobs enqueue --template reminder --params '{"orderId": "o-18"}' --in 5m --tag test`,
    ],
    check({ name, template, at, in: delay, key, keyScope, onConflict }) {
      if (name !== undefined && template !== undefined) {
        throw invalid("give a name or a template, not both: the template says which job it is");
      }
      if (name === undefined && template === undefined) throw invalid("give the name of the job, or a template");
      if (at !== undefined && delay !== undefined) throw invalid('give "at" or "in", not both');
      if (key === undefined && (keyScope ?? onConflict) !== undefined) {
        throw invalid("the scope of a key and what to do about a conflict need a key");
      }
    },
    async run(book, { name, template, params, keyScope, ...rest }): Promise<Enqueued> {
      const scope = keyScope === undefined ? {} : { keyScope: toScope(keyScope) };
      const options: EnqueueOptions = { ...rest, ...scope };
      // Not given is not the same as {}: the defaults of a template may be something else than an object.
      const made =
        template === undefined
          ? await book.jobs.enqueue(name ?? "", params ?? {}, options)
          : await book.jobs.enqueueFrom(template, params, options);
      const { id, name: named, status, created, warning } = made;
      return { id, name: named, status, created, ...(warning === undefined ? {} : { warning }) };
    },
    show({ id: job, status, created, warning }, { onConflict }) {
      const kept =
        onConflict === "replace" ? "has the key already and was replaced" : "has the key already, so none was made";
      const done = `${job} ${created ? "is enqueued" : kept}: ${status}`;
      return warning === undefined ? done : [done, warning];
    },
    // A misspelt name waits for ever, so that nobody runs it is said at once.
    async aside(book, { id: job, warning }) {
      if (warning !== undefined) return [];
      const { reason, because } = await book.jobs.explain(job);
      return reason === "host" ? because.slice(0, 1) : [];
    },
  }),

  runNow: verb({
    words: "jobs run-now <name>",
    role: "operate",
    local: true,
    needs: "session",
    definitions: "must",
    definitionsOf: ({ name }) => [name],
    about: "run a job here and now, before those that stand in line, and print its result",
    more: `Reserves the queue, waits for what runs in it, runs the job in this process and prints its result as
JSON; then the queue goes on in its order. While somebody else holds the queue it waits, or with
--reject it is a conflict (exit code 5). A job that fails is a conflict, too, and is not tried again;
one that has not ended in time is cancelled (exit code 10), and so is one that a signal ends.`,
    input: {
      name: text("the name of the job", "name"),
      params: maybe(json("the params as JSON")),
      queue: maybe(text("the queue (default: that of the definition)", "queue")),
      reject: maybe(flag("do not wait while somebody else holds the queue")),
      timeout: maybe(duration("how long to wait for the turn and the result (default: without limit)")),
    },
    examples: [`jobs run-now sum-orders --from jobs.ts --params '{"month": 11}' --timeout 1m`],
    async run(book, { name, params, reject, ...rest }) {
      const result = await book.jobs.runNow(name, params ?? {}, {
        ...rest,
        onBusy: reject === true ? "reject" : "wait",
      });
      return { name, result: (result ?? null) as unknown };
    },
    show: ({ result }) => asJson(result),
  }),
};

function toScope(scope: string): NonNullable<EnqueueOptions["keyScope"]> {
  return scope === "queued" || scope === "done" ? scope : { window: scope };
}
