// recover, mend, prune and retain: what keeps a book in order. Each says what it would do, and does it once it is told to.
import type { Book, Eviction, Pruned, Recovery, RetainedAll } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { sessionRecovered } from "../../jobs/kind.ts";
import { duration, list, maybe, text, whole, word } from "../field.ts";
import { count, section, table, when, type Shown } from "../shown.ts";
import { admin } from "../verb.ts";
import { applying } from "../shared-fields.ts";

const ends = ["completed", "failed", "cancelled", "skipped"] as const;
const keepMax = 1_000_000_000;
const bytesMax = 100_000_000_000_000;

export const keep = {
  recover: admin({
    words: "recover",
    http: "POST /recover",
    of: "book",
    destroys: true,
    needs: "session",
    about: "say what dead processes left behind, and with --apply end it",
    more: `Workers do this by themselves, so it is for a book on which none works. It says what it would end, and
ends it with --apply: the runs and reservations of sessions that have ended, runs past their timeout,
and programs on this host that outlived their worker. With --apply it is a session itself, and also
finds those whose process is gone and that nobody has declared dead. What was lost runs again when
a worker comes. It is about all tenants, and never touches the living.`,
    input: applying,
    examples: ["recover", "recover --apply"],
    run: (book, { apply = false }) => (apply ? recover(book) : book.jobs.recover({ dryRun: true })),
    show({ dryRun, lost, reservations, recovered }) {
      const found = `${count(lost, "run")} and ${count(reservations, "reservation")} of sessions that have ended`;
      return dryRun ? `${found}; end them with --apply` : `${found}: ${recovered} ended or released`;
    },
  }),

  mend: admin({
    words: "mend",
    http: "POST /mend",
    of: "book",
    destroys: true,
    about: "say which times a wrong clock has left in the book, and with --apply put them right",
    more: `A clock that was wrong leaves times that no rule explains: a job that waits longer than its own delay, a
schedule that has decided slots still to come, a reservation that lasts for a year. A program that has
the book open mends them by itself once the clock is right; this is for a book that no program had
open. It says what it would mend, and mends it with --apply: delays count from now. Make sure first
that the clock of this machine is right. It is about all tenants.`,
    input: applying,
    examples: ["mend", "mend --apply"],
    run: (book, { apply = false }) => book.mend({ dryRun: !apply }),
    show: ({ dryRun, mended }) =>
      mended.length === 0
        ? "nothing to mend"
        : [
            ...mended.map(({ name, count: found }) => `${found} against "${name}"`),
            dryRun ? "mend them with --apply" : "mended",
          ],
  }),

  prune: admin({
    words: "prune",
    http: "POST /prune",
    destroys: true,
    background: true,
    files: true,
    about: "remove finished jobs of the tenant with their runs, logs, calls and files",
    more: `It says what would leave, and removes it with --apply. With --older-than and --keep together, only
what is old enough and not among the newest leaves. Retries leave with their job, and a group as a
whole. It works in slices, so others write in between, and it may be interrupted and repeated. Log
files of programs are deleted if they are in the book's folder for files.`,
    input: {
      olderThan: maybe(duration("only what ended at least this long ago, such as 30d")),
      keep: maybe(whole("not the so many that ended last", 0, keepMax)),
      queue: maybe(text("only jobs of this queue", "queue")),
      name: maybe(text("only jobs of this name", "name")),
      status: maybe(list(word("only jobs that ended so", ends))),
      ...applying,
    },
    examples: [
      "prune --older-than 30d --keep 1000",
      "prune --older-than 7d --queue mail --status completed,cancelled --apply",
    ],
    check({ olderThan, keep: newest }) {
      if (olderThan === undefined && newest === undefined) throw invalid("say which: give olderThan or keep, or both");
    },
    run: (book, { apply = false, ...which }) => book.jobs.prune({ ...which, dryRun: !apply }),
    show: prunedLine,
  }),

  retain: admin({
    words: "retain",
    http: "POST /retain",
    destroys: true,
    background: true,
    about: "remove old runs and log lines of live listeners and apps' schedules, and old counts",
    more: `It says what would leave, and removes it with --apply. Processes that work do so every hour with the
defaults. Counts of what has left stay for --rollups; pinned runs stay; a job's run leaves with its
job, by "prune". It works in slices, so others write in between, and it may be interrupted.`,
    input: {
      runs: maybe(duration("runs that are older than this (default: 7d)")),
      logs: maybe(duration("log lines that are older than this (default: 3d)")),
      rollups: maybe(duration("counts that are older than this (default: 400d)")),
      bytes: maybe(whole("the oldest, until runs and lines take about so much", 0, bytesMax)),
      ...applying,
    },
    examples: ["retain --runs 14d", "retain --bytes 200000000 --apply"],
    async run(book, { apply = false, ...policy }): Promise<RetainedAll & { evictions: readonly Eviction[] }> {
      const done = await book.telemetry.retain({ ...policy, dryRun: !apply });
      return { ...done, evictions: await book.telemetry.evictions() };
    },
    show({ dryRun, runs, logs, jobs, rollups, evictions }) {
      const removed = [
        count(runs, "run"),
        count(logs, "log line"),
        `${count(jobs, "job")} of apps' schedules and ${count(rollups, "count")}`,
      ].join(", ");
      return [
        `${removed} ${dryRun ? "would be removed; remove them with --apply" : "removed"}`,
        ...(evictions.length === 0 ? [] : [section("removed so far", table(evictions, evictionColumns))]),
      ];
    },
  }),
};

async function recover(book: Book): Promise<Recovery> {
  let lost = 0;
  const forget = sessionRecovered.subscribe(({ jobs }) => void (lost += jobs));
  try {
    // A session that is found dead here is recovered in the transaction that says so.
    await book.sessions.look();
    const before = lost;
    const done = await book.jobs.recover();
    return { ...done, lost, recovered: before + done.recovered };
  } finally {
    forget();
  }
}

function prunedLine(pruned: Pruned): Shown {
  const { dryRun, jobs, groups, runs, logs, steps, reservations, others, files, filesDeleted } = pruned;
  const counts = [
    count(jobs, "job"),
    count(groups, "group"),
    count(runs, "run"),
    ...Object.entries(others).map(([kind, number]) => count(number, kind)),
    ...(reservations === 0 ? [] : [count(reservations, "reservation")]),
    `${count(logs, "log line")} and ${count(steps, "step")} ${dryRun ? "would be removed" : "removed"}`,
  ].join(", ");
  const rest = files.length - filesDeleted;
  const deleted = `${count(filesDeleted, "log file")} deleted${rest === 0 ? "" : `, ${rest} not there or elsewhere`}`;
  const leaving = `${count(files.length, "log file goes", "log files go")} with them`;
  return [
    counts,
    ...(files.length === 0 ? [] : [dryRun ? leaving : deleted]),
    ...(dryRun ? ["remove them with --apply"] : []),
  ].join("; ");
}

const evictionColumns = {
  "removed on": ({ at }: Eviction) => when(at),
  what: ({ what }: Eviction) => what,
  by: ({ reason }: Eviction) => reason,
  rows: ({ removed }: Eviction) => removed,
  until: ({ until }: Eviction) => when(until),
};
