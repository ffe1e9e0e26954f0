// workers: what a program in any language says to run jobs of this book.
import type { AttachedWorker, LeasedJob, LeaseEnded, LeaseFailOptions, LeaseRenewed } from "../../index.ts";
import { formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { parseJson } from "../../core/parse-json.ts";
import { quote } from "../../core/quote.ts";
import { checkError } from "../../jobs/lease/workers.ts";
import { duration, field, flag, json, list, maybe, text, whole, word, type Field } from "../field.ts";
import { ago, copied, sentence, table, when, type Shown } from "../shown.ts";
import { exampleId, worker } from "../verb.ts";

const namesMax = limits.remoteNamesMax;
const session = text("the session, as attach gave it", "id");
const lease = text("the lease, as claim gave it: a secret", "secret");
const exampleLease = `dbw_${"x".repeat(8)}…`;
const longest = formatDuration(limits.leaseMsMax);
const lateness = `A lease that has run out is a conflict (exit code 5): it says what became of the job, and what the
worker did counts for nothing.`;

/** How far the work is. */
const done: Field<number, false> = field<number>({
  kind: "json",
  about: "how far it is, from 0 to 1",
  metavar: "number",
  schema: { type: "number", minimum: 0, maximum: 1 },
  check(value, what) {
    if (typeof value === "number" && value >= 0 && value <= 1) return;
    throw invalid(`${what} is ${quote(value)}: give a number from 0 to 1`);
  },
  fromText: (given, what) => parseJson(given, { what }),
});

const error: Field<LeaseFailOptions["error"], false> = field<LeaseFailOptions["error"]>({
  kind: "json",
  about: 'what was wrong: {"type": "ValueError", "message": …, "trace": …}, of which only the message is needed',
  metavar: "json",
  schema: {
    type: "object",
    properties: { type: { type: "string" }, message: { type: "string" }, trace: { type: "string" } },
    required: ["message"],
    additionalProperties: false,
  },
  check: checkError,
  fromText: (given, what) => parseJson(given, { what }),
});

export const workers = {
  attach: worker({
    words: "workers attach",
    about: "make a session for a worker in another program",
    more: `It says which jobs the worker runs, and from which queues. Whoever looks sees the session in "sessions
list", of the kind remote. One that holds no job and is silent for two minutes is taken for gone, and
attaches again.`,
    input: {
      names: maybe(
        list(text("a job that it runs (default: those of its token)", "name"), { one: "name", max: namesMax }),
      ),
      queues: maybe(list(text("only from this queue (default: all)", "queue"), { one: "queue", max: namesMax })),
      host: maybe(text("where it runs, for people", "name", limits.nameBytesMax)),
      pid: maybe(whole("its process", 0, 2_147_483_647)),
      metadata: maybe(json("anything else about it: a version, a language")),
    },
    examples: ["workers attach --name resize --host worker-1"],
    run: (book, { metadata, ...rest }, { worker: grant }): Promise<AttachedWorker> =>
      book.workers.attach({ ...rest, ...(metadata === undefined ? {} : { metadata: objectOf(metadata) }) }, grant),
    show({ session: made, names, queues }) {
      const from = queues === null ? "any queue" : `the queues ${queues.join(", ")}`;
      return [sentence(copied(made)), `It runs ${names.join(", ")} from ${from}.`];
    },
  }),

  claim: worker({
    words: "workers claim",
    about: "take jobs for a worker, and wait for the first one if asked to",
    more: `Each job comes with a lease: a secret that must be renewed before it runs out, and that ends the run. The
book's clock alone judges it. Jobs are taken in the order of their queues, within all limits, as by any
other worker.`,
    input: {
      session,
      most: maybe(whole("how many at most (default: 1)", 1, limits.leasedJobsMax)),
      wait: maybe(
        duration(`how long to wait for one, at most ${formatDuration(limits.pollMsMax)} (default: not at all)`),
      ),
      lease: maybe(
        duration(`how long a lease lasts unless it is renewed, at most ${longest} (default: 30s)`, { min: 1 }),
      ),
      names: maybe(list(text("of what it attached for, only this job", "name"), { one: "name", max: namesMax })),
      queues: maybe(list(text("of what it attached for, only this queue", "queue"), { one: "queue", max: namesMax })),
    },
    examples: [`workers claim --session ${exampleId} --most 5 --wait 30s`],
    async run(book, { session: of, ...options }, { signal, worker: grant }): Promise<{ items: readonly LeasedJob[] }> {
      return { items: await book.workers.claim(of, { ...options, signal }, grant) };
    },
    show: ({ items }) =>
      table(
        items,
        {
          job: (each) => copied(each.id),
          name: (each) => each.name,
          attempt: (each) => `${each.attempt} of ${each.attempts}`,
          expires: (each) => when(each.expiresAt),
          lease: (each) => copied(each.lease),
        },
        { none: "There is no job to take.", least: ["expires"] },
      ),
  }),

  extend: worker({
    words: "workers extend",
    about: "renew a lease, and hear whether the job was cancelled",
    more: lateness,
    input: {
      lease,
      lasts: maybe(duration(`how long it lasts from now on, at most ${longest} (default: as before)`, { min: 1 })),
    },
    examples: [`workers extend --lease ${exampleLease}`],
    run: (book, { lease: of, ...options }, { worker: grant }) => book.workers.extend(of, options, grant),
    show: showRenewed,
  }),

  progress: worker({
    words: "workers progress",
    about: "say how far a job is; it renews the lease as well",
    input: { lease, done, note: maybe(text("a word about it", "text", limits.progressNoteBytesMax)) },
    examples: [`workers progress --lease ${exampleLease} --done 0.5 --note "half of the pages"`],
    run: (book, { lease: of, ...options }, { worker: grant }) => book.workers.progress(of, options, grant),
    show: showRenewed,
  }),

  log: worker({
    words: "workers log",
    about: "write a line into the log of a run; it renews the lease as well",
    more: `After ${limits.logLinesMax} lines of one run no more are kept.`,
    input: {
      lease,
      message: text("what to write", "text", limits.logLineBytesMax),
      level: maybe(word("how grave it is (default: info)", ["debug", "info", "warn", "error"])),
      fields: maybe(json("values to keep with it")),
    },
    examples: [`workers log --lease ${exampleLease} --message "page 7 is empty" --level warn`],
    run: (book, { lease: of, fields, ...rest }, { worker: grant }) =>
      book.workers.log(of, { ...rest, ...(fields === undefined ? {} : { fields: objectOf(fields) }) }, grant),
    show: showRenewed,
  }),

  settle: worker({
    words: "workers settle",
    about: "say that a job is done, and what it returned",
    more: `Said twice with the same lease it is done once, and the second answer says so. ${lateness}`,
    input: { lease, result: maybe(json("what it returned, as JSON")) },
    examples: [`workers settle --lease ${exampleLease} --result '{"bytes": 512}'`],
    run: (book, { lease: of, result }, { worker: grant }) => book.workers.settle(of, result, grant),
    show: showEnded,
  }),

  fail: worker({
    words: "workers fail",
    about: "say that a job failed; it is tried again as its attempts and its backoff say",
    more: `A job that was asked to cancel is cancelled instead. ${lateness}`,
    input: {
      lease,
      error,
      retryable: maybe(flag("false: trying again cannot help, so it fails for good")),
      retryIn: maybe(duration("the next try waits at least this long")),
    },
    examples: [`workers fail --lease ${exampleLease} --error '{"message": "no such page"}'`],
    run: (book, { lease: of, ...options }, { worker: grant }) => book.workers.fail(of, options, grant),
    show: showEnded,
  }),

  leave: worker({
    words: "workers leave",
    about: "end the session of a worker; jobs that it still holds begin again elsewhere",
    input: { session },
    examples: [`workers leave --session ${exampleId}`],
    run: (book, input, { worker: grant }) => book.workers.leave(input.session, grant),
    show: ({ session: ended, returned }) => `${ended} has left; jobs that it gave back: ${returned}`,
  }),
};

function showRenewed({ cancelled, expiresAt }: LeaseRenewed): Shown {
  const until = sentence("the lease runs out", ago(expiresAt));
  return cancelled ? ['The job was cancelled: stop, and say so with "workers fail".', until] : until;
}

function showEnded({ id, status, retriedBy, already }: LeaseEnded): Shown {
  const again = retriedBy === null ? "" : `; ${retriedBy} tries again`;
  return `${id} is ${status}${already ? " already" : ""}${again}`;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalid(`${quote(value)} is no object: give {"version": "1.2"}`);
}
