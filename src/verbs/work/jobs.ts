// jobs: what there is to know about them, and making them.
import type { Enqueued, EnqueueOptions, JobDetails, JobRecord, RunLog } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { paged } from "../list.ts";
import { choice, duration, flag, id, list, maybe, text, word, wordOrDuration } from "../field.ts";
import { checkDue, due, making, tags } from "../shared-fields.ts";
import { ago, asJson, sentence } from "../shown.ts";
import { exampleId, operate, patienceOf, read } from "../verb.ts";
import { bulk, which } from "./job-bulk.ts";
import { steer } from "./job-steer.ts";
import { jobPage, jobTable } from "./job-view.ts";

const statuses = ["waiting", "queued", "running", "completed", "failed", "cancelled", "skipped"] as const;

const explain = read({
  words: "jobs explain <id>",
  http: "GET /jobs/{id}/explanation",
  about: "say why a job has not run, or what became of it",
  more: `After the status stands the obstacle: time, key, host, paused, limit, rate, alone or place. Then come
sentences, the most important first; for a job that runs or has ended they say where and how.`,
  input: { id: id("job") },
  run: (book, { id: wanted }) => book.jobs.explain(wanted),
  show: ({ status, reason, because }) => [reason === status ? status : `${status}: ${reason}`, ...because],
});

export const jobs = {
  list: paged({
    words: "jobs list",
    about: "list jobs, newest first",
    more: `A job is waiting (for a time, a key, a host …), queued (it may run now), running, completed, failed,
cancelled or skipped. A retry is a job of its own, so one that failed may have been tried again since.

A list has jobs that were enqueued (job), fired by a schedule (schedule) or run directly (direct). What
events and calls are made of is listed when --kind asks for it (delivery, catch_up, call, or all), or
when --name names it.`,
    input: {
      status: maybe(list(word("only jobs in these states", statuses))),
      ...which,
      retried: maybe(
        choice("only those that were tried again", "only those that were not: what failed has failed for good"),
      ),
    },
    examples: [
      "jobs list --status failed,cancelled --name send-receipt",
      "jobs list --status failed --no-retried",
      "jobs list --schedule nightly --since 7d",
      "jobs list --kind delivery,call --status running",
    ],
    find: (book, filter) => book.jobs.list(filter),
    ...jobTable,
    none: "There are no such jobs, or none before that cursor.",
  }),

  show: read({
    words: "jobs show <id>",
    about: "show one job: its params, its run with error, logs and program, its progress, its chain, its cause",
    more: "The chain is the job with all its retries, the first one first; a retry is a new job.",
    input: { id: id("job") },
    async run(book, { id: wanted }): Promise<JobDetails & { chain: readonly JobRecord[]; logs: readonly RunLog[] }> {
      const job = await book.jobs.get(wanted);
      const { notify: _notify, ...alone } = job;
      const chain = job.retryOf === null && job.retriedBy === null ? [alone] : await book.jobs.chain(wanted);
      return { ...job, chain, logs: job.runId === null ? [] : await book.runs.logs(job.runId) };
    },
    show: ({ chain, logs, ...job }) => jobPage(job, chain, logs),
  }),

  explain,

  place: read({
    words: "jobs place <id>",
    about: "say where a job stands in line, and when it may start",
    more: `The time is an estimate: the mean of the queue's last runs, over how many run there now. A job that
waits for something, runs or has ended stands in no line; "jobs explain" says more.`,
    input: { id: id("job") },
    async run(book, { id: wanted }) {
      const { status, waitsFor } = await book.jobs.get(wanted);
      const found = await book.jobs.place(wanted);
      if (found === null) return { id: wanted, status, waitsFor, place: null, of: null, startsAt: null };
      return { id: wanted, status: "queued" as const, waitsFor: null, ...found };
    },
    show({ id: job, status, waitsFor, place, of, startsAt }) {
      if (place === null)
        return `${job} is ${status}${waitsFor === null ? "" : ` for its ${waitsFor}`} and stands in no line`;
      if (startsAt === null) return `${place} of ${of} in line: nobody can say when it starts`;
      return sentence(`${place} of ${of} in line: it may start`, ago(startsAt));
    },
  }),

  result: read({
    words: "jobs result <id>",
    // Whoever waits leaves a mark on the job, so that its end is told.
    needs: "write",
    about: "print what a job returned, and wait for it if asked to",
    more: `Prints the result as JSON, or null when there is none. A retry belongs to its job: the result is that
of the last one. Without --wait a job that has not ended is told so (exit code 21). One that failed
for good or was cancelled is a conflict (5), and one that has not ended in time a timeout (10).`,
    input: {
      id: id("job"),
      wait: maybe(flag("wait until the job has ended with all its retries")),
      timeout: maybe(duration("with wait: how long, such as 30s (default: without limit)")),
    },
    examples: [`jobs result ${exampleId} --wait --timeout 30s`],
    check({ wait, timeout }) {
      if (wait !== true && timeout !== undefined) throw invalid("timeout is for wait: give both");
    },
    async run(book, { id: wanted, wait, timeout }, call) {
      const last = (await book.jobs.chain(wanted)).at(-1);
      if (wait !== true && last?.finishedAt === null) {
        return { id: wanted, lastId: last.id, status: last.status, result: null };
      }
      const result = await book.jobs.result(wanted, wait === true ? patienceOf(timeout, call) : { timeout: 0 });
      return {
        id: wanted,
        lastId: (await book.jobs.chain(wanted)).at(-1)?.id ?? wanted,
        status: "completed" as const,
        result: (result ?? null) as unknown,
      };
    },
    show({ id: job, lastId, status, result }) {
      if (status === "completed") return asJson(result);
      const which = lastId === job ? job : `${job} is tried again by ${lastId}, which`;
      return `${which} is ${status}, so there is no result yet: wait for it with --wait`;
    },
    verdict: ({ status }) => (status === "completed" ? undefined : "open"),
  }),

  enqueue: operate({
    words: "jobs enqueue [name]",
    http: "POST /jobs",
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
      ...making,
      ...due,
      key: maybe(text("at most one job of this name and key at a time", "key")),
      keyScope: maybe(wordOrDuration('how long the key is taken (default: "done")', ["queued", "done"])),
      onConflict: maybe(word("when the key is taken (default: keep)", ["keep", "replace", "error"])),
      idempotencyKey: maybe(text("the same key and params again give the same job", "key")),
      tags: tags("the job"),
    },
    examples: [
      `jobs enqueue send-receipt --params '{"orderId": "o-17"}' --key o-17`,
      "jobs enqueue sum-orders --params @month.json --at 2026-12-01T06:00:00Z",
      `jobs enqueue --template reminder --params '{"orderId": "o-18"}' --in 5m --tag test`,
    ],
    check({ name, template, key, keyScope, onConflict, ...rest }) {
      if (name !== undefined && template !== undefined) {
        throw invalid("give a name or a template, not both: the template says which job it is");
      }
      if (name === undefined && template === undefined) throw invalid("give the name of the job, or a template");
      checkDue(rest);
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
    async aside(ask, { id: job, warning }) {
      if (warning !== undefined) return [];
      const { reason, because } = await ask(explain, { id: job });
      return reason === "host" ? because.slice(0, 1) : [];
    },
  }),

  runNow: operate({
    words: "jobs run-now <name>",
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
      params: making.params,
      queue: making.queue,
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

  ...steer,
  ...bulk,
};

function toScope(scope: string): NonNullable<EnqueueOptions["keyScope"]> {
  return scope === "queued" || scope === "done" ? scope : { window: scope };
}
