// jobs cancel-all, retry-all and delete-all: the same for all jobs that a filter fits.
import type { Bulk, JobRule, Retained } from "../../index.ts";
import { duration, list, maybe, moment, text, word } from "../field.ts";
import { applying } from "../shared-fields.ts";
import { count } from "../shown.ts";
import { admin, ofCall, operate } from "../verb.ts";

const kinds = ["job", "schedule", "direct", "delivery", "catch_up", "call", "all"] as const;

/** Which jobs are meant, but for their state. */
export const which = {
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
};

const slices = `It works in slices of a hundred, the newest first, so others write in between; it may be interrupted, and what
was done until then stays. What is made meanwhile is left alone.`;

export const bulk = {
  cancelAll: operate({
    words: "jobs cancel-all",
    destroys: true,
    background: true,
    about: "say how many open jobs a filter fits, and with --apply cancel them",
    more: `One that waits never runs, one that runs is asked to end. Without a filter it is all open jobs of the tenant.
${slices}`,
    input: {
      status: maybe(list(word("only jobs in these states (default: all of them)", ["waiting", "queued", "running"]))),
      ...which,
      ...applying,
    },
    examples: ["jobs cancel-all --queue mail", "jobs cancel-all --name send-receipt --since 1h --apply"],
    run: (book, { apply = false, ...filter }, call) =>
      book.jobs.cancelAll(filter, apply ? ofCall(call) : { dryRun: true }),
    show: (done) => toldOf(done, { would: "would be cancelled; cancel", did: "cancelled or asked to end" }),
  }),

  retryAll: operate({
    words: "jobs retry-all",
    destroys: true,
    background: true,
    about: "say how many failed jobs a filter fits, and with --apply try them again",
    more: `Jobs that were tried again already are not meant. Each retry is a new job, and goes to the end of the line.
${slices}`,
    input: {
      status: maybe(list(word("jobs in these states (default: failed)", ["failed", "cancelled"]))),
      ...which,
      ...applying,
    },
    examples: ["jobs retry-all --name send-receipt", "jobs retry-all --queue mail --since 24h --apply"],
    run: (book, { apply = false, ...filter }, call) =>
      book.jobs.retryAll(filter, apply ? ofCall(call) : { dryRun: true }),
    show: (done) => toldOf(done, { would: "would be tried again; try", did: "tried again" }),
  }),

  deleteAll: admin({
    words: "jobs delete-all",
    destroys: true,
    background: true,
    files: true,
    about: "say how many ended jobs a filter fits, and with --apply remove them with all that is theirs",
    more: `As "retain --jobs 0s" does, of jobs alone: retries leave with their job, a group as a whole, and log files of programs
if they are in the book's folder for files; pinned runs stay. Without a filter it is all ended jobs of
the tenant. It works in slices, so others write in between, and it may be interrupted and repeated.`,
    input: {
      status: maybe(
        list(word("only jobs that ended so (default: all of them)", ["completed", "failed", "cancelled", "skipped"])),
      ),
      queue: which.queue,
      name: which.name,
      olderThan: maybe(duration("only those that ended at least this long ago")),
      ...applying,
    },
    examples: ["jobs delete-all --name send-receipt --status completed", "jobs delete-all --older-than 7d --apply"],
    async run(book, { apply = false, olderThan = "0s", ...filter }, call): Promise<Removed> {
      const rule: JobRule = { ...filter, olderThan };
      const { dryRun, jobs, groups, steps, runs, filesDeleted } = await book.retain({
        ...ofCall(call),
        jobs: rule,
        apply,
      });
      return { dryRun, jobs, groups, steps, runs, filesDeleted };
    },
    show: ({ dryRun, jobs, groups }) =>
      `${count(jobs, "job")} and ${count(groups, "group")} ${dryRun ? "would be removed; remove them with --apply" : "removed"}`,
  }),
};

type Removed = Pick<Retained, "dryRun" | "jobs" | "groups" | "steps" | "runs" | "filesDeleted">;

function toldOf(
  { dryRun, count: jobs, passed, stopped }: Bulk,
  { would, did }: { would: string; did: string },
): string {
  if (dryRun) return `${count(jobs, "job")} ${would} them with --apply`;
  const rest = passed === 0 ? "" : `, ${passed} had ended or gone on meanwhile`;
  return `${count(jobs, "job")} ${did}${rest}${stopped ? "; the rest was not looked at" : ""}`;
}
