// jobs list, show, explain, place and result: what there is to know about jobs.
import type { JobRecord, RunLog } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { paged } from "../cursor.ts";
import { choice, duration, flag, id, list, maybe, moment, page, text, word } from "../field.ts";
import { jobPage, jobTable } from "../job-view.ts";
import { ago, json as asJson, sentence } from "../shown.ts";
import { verb } from "../verb.ts";

const statuses = ["waiting", "queued", "running", "completed", "failed", "cancelled", "skipped"] as const;
const kinds = ["job", "schedule", "direct", "delivery", "catch_up", "call", "all"] as const;
const example = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

export const look = {
  list: verb({
    words: "jobs list",
    http: "GET /jobs",
    role: "read",
    about: "list jobs, newest first",
    more: `A job is waiting (for a time, a key, a host …), queued (it may run now), running, completed, failed,
cancelled or skipped. A retry is a job of its own, so one that failed may have been tried again since.

A list has jobs that were enqueued (job), fired by a schedule (schedule) or run directly (direct). What
events and calls are made of is listed when --kind asks for it (delivery, catch_up, call, or all), or
when --name names it.`,
    input: {
      status: maybe(list(word("only jobs in these states", statuses))),
      queue: maybe(text("only jobs of this queue", "queue")),
      name: maybe(text("only jobs of this name", "name")),
      key: maybe(text("only jobs that were enqueued with this key", "key")),
      tag: maybe(text("only jobs with this tag", "tag")),
      group: maybe(text("only jobs of this group", "id")),
      schedule: maybe(text("only what this schedule has fired", "name")),
      template: maybe(text("only jobs that were made from this template", "name")),
      kind: maybe(list(word("only these kinds (default: job,schedule,direct)", kinds))),
      since: maybe(moment("only those made from then on: an ISO time, or how long ago, such as 24h")),
      until: maybe(moment("only those made before then")),
      retried: maybe(
        choice("only those that were tried again", "only those that were not: what failed has failed for good"),
      ),
      ...page,
    },
    examples: [
      "jobs list --status failed,cancelled --name send-receipt",
      "jobs list --status failed --no-retried",
      "jobs list --schedule nightly --since 7d",
      "jobs list --kind delivery,call --status running",
    ],
    run: (book, input) => paged(book, "jobs", input, (filter) => book.jobs.list(filter)),
    show: ({ items }) => jobTable(items, "There are no such jobs, or none before that cursor."),
  }),

  show: verb({
    words: "jobs show <id>",
    http: "GET /jobs/{id}",
    role: "read",
    about: "show one job: its params, its run with error, logs and program, its progress, its chain, its cause",
    more: "The chain is the job with all its retries, the first one first; a retry is a new job.",
    input: { id: id("job") },
    examples: [`jobs show ${example}`],
    async run(book, { id: wanted }): Promise<JobRecord & { chain: readonly JobRecord[]; logs: readonly RunLog[] }> {
      const job = await book.jobs.get(wanted);
      const chain = await book.jobs.chain(wanted);
      return { ...job, chain, logs: job.runId === null ? [] : await book.runs.logs(job.runId) };
    },
    show: ({ chain, logs, ...job }) => jobPage(job, chain, logs),
  }),

  explain: verb({
    words: "jobs explain <id>",
    http: "GET /jobs/{id}/explanation",
    role: "read",
    about: "say why a job has not run, or what became of it",
    more: `After the status stands the obstacle: time, key, host, paused, limit, rate, alone or place. Then come
sentences, the most important first; for a job that runs or has ended they say where and how.`,
    input: { id: id("job") },
    examples: [`jobs explain ${example}`],
    run: (book, { id: wanted }) => book.jobs.explain(wanted),
    show: ({ status, reason, because }) => [reason === status ? status : `${status}: ${reason}`, ...because],
  }),

  place: verb({
    words: "jobs place <id>",
    http: "GET /jobs/{id}/place",
    role: "read",
    about: "say where a job stands in line, and when it may start",
    more: `The time is an estimate: the mean of the queue's last runs, over how many run there now. A job that
waits for something, runs or has ended stands in no line; "jobs explain" says more.`,
    input: { id: id("job") },
    examples: [`jobs place ${example}`],
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

  result: verb({
    words: "jobs result <id>",
    http: "GET /jobs/{id}/result",
    role: "read",
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
    examples: [`jobs result ${example} --wait --timeout 30s`],
    check({ wait, timeout }) {
      if (wait !== true && timeout !== undefined) throw invalid("timeout is for wait: give both");
    },
    async run(book, { id: wanted, wait, timeout }) {
      const last = (await book.jobs.chain(wanted)).at(-1);
      if (wait !== true && last?.finishedAt === null) {
        return { id: wanted, lastId: last.id, status: last.status, result: null };
      }
      const result = await book.jobs.result(
        wanted,
        wait === true ? (timeout === undefined ? {} : { timeout }) : { timeout: 0 },
      );
      return {
        id: wanted,
        lastId: (await book.jobs.chain(wanted)).at(-1)?.id ?? wanted,
        status: "completed" as const,
        result: result ?? null,
      };
    },
    show({ id: job, lastId, status, result }) {
      if (status === "completed") return asJson(result);
      const which = lastId === job ? job : `${job} is tried again by ${lastId}, which`;
      return `${which} is ${status}, so there is no result yet: wait for it with --wait`;
    },
    verdict: ({ status }) => (status === "completed" ? undefined : "open"),
  }),
};
