// recover, mend, reseal and retain: what keeps a book in order. Each says what it would do, and does it once it is told to.
import type { Book, Eviction, JobRule, Recovery, Retained, Retention, RetainOptions } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { sessionRecovered } from "../../jobs/kind.ts";
import { duration, list, maybe, text, whole, word } from "../field.ts";
import { count, day, section, table, when, type Shown } from "../shown.ts";
import { admin, ofCall } from "../verb.ts";
import { applying } from "../shared-fields.ts";

const ends = ["completed", "failed", "cancelled", "skipped"] as const;
// Written out, because the policy's own list would load the engine for each help.
const parts = [
  "jobs",
  "calls",
  "events",
  "runs",
  "logs",
  "decisions",
  "rollups",
  "sizeMax",
] as const satisfies readonly (keyof Required<Retention>)[];
const keepMax = 1_000_000_000;
const bytesMax = 100_000_000_000_000;

export const keep = {
  recover: admin({
    words: "recover",
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

  reseal: admin({
    words: "reseal",
    of: "book",
    destroys: true,
    background: true,
    about: "say what is not sealed with the first key in DAYBOOK_KEY, and with --apply seal it anew",
    more: `For a change of keys. Give the new key first and the old ones after it, separated by commas, to every process;
then seal anew what calls sent and were answered and the webhooks that are notified of ends, and take the
old keys away. What is kept in clear because there was no key is sealed, too. It says what it would seal, and seals it with --apply. What no given key
opens stays as it is, and is counted (exit code 20). It works in slices, so others write in between, and it
may be interrupted and repeated. It is about all tenants.`,
    input: applying,
    examples: ["reseal", "reseal --apply"],
    run: (book, { apply = false }) => book.reseal({ dryRun: !apply }),
    show({ dryRun, keyId, requests, answers, notices, missing }) {
      const found = `${count(requests, "request")}, ${count(answers, "answer")} and ${count(notices, "notice")}`;
      return [
        dryRun
          ? `${found} would be sealed with key ${keyId}; seal them with --apply`
          : `${found} sealed with key ${keyId}`,
        ...missing.map((each) => `${each.count} sealed with key ${each.keyId}, which is not given`),
      ];
    },
    verdict: ({ missing }) => (missing.length === 0 ? undefined : "found"),
  }),

  retain: admin({
    words: "retain",
    destroys: true,
    background: true,
    files: true,
    about: "say what of the tenant is old enough to leave, and with --apply remove it",
    more: `Without ages it goes by the policy of the book: what a program says with "retention" when it opens the
book, else the defaults. A process that works applies that policy every hour. With ages, or with --parts,
it is about what they name and nothing else. --keep, --queue, --name and --status are about jobs; with
--jobs and --keep together, only what is old enough and not among the newest leaves.

Retries leave with their job, a group as a whole, and log files of programs if they are in the book's
folder for files. Pinned runs, dead letters and events that a listener has not finished stay; counts
of what has left stay for --rollups. It works in slices, so others write in between, and it may be
interrupted and repeated.`,
    input: {
      jobs: maybe(duration("jobs that ended at least this long ago (default: 30d)")),
      keep: maybe(whole("of the jobs, not the so many that ended last", 0, keepMax)),
      queue: maybe(text("only jobs of this queue", "queue")),
      name: maybe(text("only jobs of this name", "name")),
      status: maybe(list(word("only jobs that ended so", ends))),
      calls: maybe(duration("calls that ended at least this long ago (default: 30d)")),
      events: maybe(duration("events that were published at least this long ago (default: 30d)")),
      runs: maybe(duration("runs of live listeners and of apps' schedules (default: 7d)")),
      logs: maybe(duration("log lines of live listeners (default: 3d)")),
      decisions: maybe(duration("decisions about slots of schedules (default: 90d)")),
      rollups: maybe(duration("counts of runs (default: 400d)")),
      sizeMax: maybe(whole("the oldest runs of live listeners, until about so many bytes are left", 0, bytesMax)),
      parts: maybe(list(word("only these, as the policy of the book says", parts))),
      ...applying,
    },
    examples: [
      "retain",
      "retain --apply",
      "retain --parts calls,events --apply",
      "retain --jobs 7d --keep 1000 --status completed,cancelled --apply",
    ],
    check({ jobs, keep: newest, queue, name, status }) {
      if (jobs !== undefined || newest !== undefined || (queue ?? name ?? status) === undefined) return;
      throw invalid("say which jobs leave: give jobs (an age) or keep, or both");
    },
    async run(book, input, call): Promise<Retained & { evictions: readonly Eviction[] }> {
      const done = await book.retain({ ...ofCall(call), ...optionsOf(input) });
      return { ...done, evictions: await book.telemetry.evictions() };
    },
    show: retainedLines,
  }),
};

type Asked = Omit<RetainOptions, "jobs"> & {
  readonly parts?: readonly (keyof RetainOptions)[];
  readonly jobs?: string;
} & Pick<JobRule, "keep" | "queue" | "name" | "status">;

function optionsOf({
  parts = [],
  apply = false,
  jobs,
  keep: newest,
  queue,
  name,
  status,
  ...ages
}: Asked): RetainOptions {
  const given = { olderThan: jobs, keep: newest, queue, name, status };
  const rule = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return {
    ...Object.fromEntries(parts.map((part) => [part, true])),
    ...(Object.keys(rule).length === 0 ? {} : { jobs: rule }),
    ...ages,
    apply,
  };
}

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

const kinds = [
  ["jobs", "job"],
  ["groups", "group"],
  ["steps", "step"],
  ["calls", "call"],
  ["reservations", "reservation"],
  ["runs", "run"],
  ["logs", "log line"],
  ["events", "event"],
  ["decisions", "decision"],
  ["rollups", "count"],
] as const;

const reasons = {
  unfinished: "not all deliveries have ended",
  deadLettered: "dead letters are about them",
  unheard: "a listener that catches up has not come so far",
} as const;

function retainedLines(done: Retained & { readonly evictions: readonly Eviction[] }): Shown {
  const { dryRun, policy, kept, files, filesDeleted, evictions } = done;
  const some = kinds.flatMap(([name, one]) => (done[name] === 0 ? [] : count(done[name], one)));
  const gone = some.length === 0 ? "nothing" : some.join(", ");
  const elsewhere = files.length - filesDeleted;
  const deleted = `${count(filesDeleted, "log file")} deleted${elsewhere === 0 ? "" : `, ${elsewhere} not there or elsewhere`}`;
  // What is left out stays, or was not asked for.
  const inOrder = Object.entries(policy).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const ages = inOrder.flatMap(([part, age]) =>
    age === false ? [] : `${part} ${typeof age === "object" ? toJson(age) : age}`,
  );
  const soFar = table(evictions, {
    "removed on": ({ at }) => day(at),
    what: ({ what }) => what,
    by: ({ reason }) => reason,
    rows: ({ removed }) => removed,
    until: ({ until }) => when(until),
  });
  return [
    dryRun ? `${gone} would be removed${some.length === 0 ? "" : "; remove them with --apply"}` : `${gone} removed`,
    ...(files.length === 0
      ? []
      : [dryRun ? `${count(files.length, "log file goes", "log files go")} with them` : deleted]),
    ...Object.entries(reasons).flatMap(([name, why]) => {
      const stay = kept[name as keyof typeof reasons];
      return stay === 0 ? [] : `${stay} of the old events ${stay === 1 ? "stays" : "stay"}: ${why}`;
    }),
    `by: ${ages.length === 0 ? "nothing, all stays" : ages.join(", ")}`,
    ...(evictions.length === 0 ? [] : [section("removed so far", soFar)]),
  ];
}
