// How the book is at this moment, in one answer that costs the same beside a million rows, and whether somebody should look.
import { countCalls, type CallCounts } from "../calls/read-calls.ts";
import type { Counted } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { countLetters, readBehind, type Behind } from "../events/behind.ts";
import { readPaused, readStanding, type Paused, type Standing } from "../jobs/explain/standing.ts";
import { readFires, type Fires } from "../schedules/read-schedule.ts";
import { readSize, type BookSize } from "../storage/info.ts";
import type { Store } from "../storage/store.ts";
import { sinkPrefix } from "../calls/sink/broker.ts";
import { telemetryReads } from "../telemetry/telemetry.ts";
import type { Overview } from "../telemetry/report/overview.ts";

/** Trouble: work does not flow. Attention: somebody should look at something. */
export type Verdict = "ok" | "attention" | "trouble";

export type BookHealth = {
  readonly at: number;
  /** The worst of the reasons. */
  readonly verdict: Verdict;
  /** Why it is not ok, the worst first. */
  readonly reasons: readonly HealthReason[];
  /** Open jobs of every kind, deliveries and calls among them. */
  readonly jobs: Standing;
  /** Runs of the last 24 hours, counted by rollups, which are a few seconds behind. */
  readonly runs: { readonly ended: number; readonly failed: number };
  readonly schedules: Fires;
  /** Dead letters that wait for a person. */
  readonly deadLetters: Counted;
  readonly calls: CallCounts;
  readonly listeners: BehindOf;
  readonly sinks: BehindOf;
  /** On `book.tenant(id)`, only those that run or ran something of that tenant. */
  readonly sessionsRunning: number;
  readonly paused: Paused;
  /** Null on `book.tenant(id)`: it grows with what each tenant writes. */
  readonly size: BookSize | null;
  /** What the sessions of the last 24 hours could not record or hear; null on `book.tenant(id)`. */
  readonly dropped: Overview["dropped"];
};

export type HealthReason = {
  readonly verdict: Exclude<Verdict, "ok">;
  readonly about: HealthTopic;
  readonly because: string;
};

export type HealthTopic =
  | "jobs"
  | "runs"
  | "schedules"
  | "dead-letters"
  | "listeners"
  | "sinks"
  | "queues"
  | "telemetry"
  | "book";

export type BehindOf = {
  /** How many are behind. */
  readonly count: number;
  /** The first of them, the one that has waited longest first. */
  readonly items: readonly Behind[];
};

const dayMs = 86_400_000;

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export async function readHealth(store: Store, tenant: string, seenBy: string | null): Promise<BookHealth> {
  const at = store.clock.now();
  const [jobs, overview, schedules, deadLetters, calls, behind, paused, size] = await Promise.all([
    readStanding(store, tenant),
    telemetryReads(store, tenant, seenBy).overview({ since: "24h" }),
    readFires(store, tenant),
    countLetters(store, tenant),
    countCalls(store, tenant, at - dayMs),
    readBehind(store, tenant),
    readPaused(store, tenant),
    seenBy === null ? readSize(store) : null,
  ]);
  const isSink = ({ name }: Behind): boolean => name.startsWith(sinkPrefix);
  const sinks = behind.filter(isSink).map((each) => ({ ...each, name: each.name.slice(sinkPrefix.length) }));
  const found = {
    at,
    jobs,
    runs: { ended: overview.runs, failed: overview.errors },
    schedules,
    deadLetters,
    calls,
    listeners: firstOf(behind.filter((each) => !isSink(each))),
    sinks: firstOf(sinks),
    sessionsRunning: overview.sessionsRunning,
    paused,
    size,
    dropped: overview.dropped,
  };
  const reasons = reasonsFor(found);
  return { ...found, verdict: reasons[0]?.verdict ?? "ok", reasons };
}

function firstOf(behind: readonly Behind[]): BehindOf {
  return { count: behind.length, items: behind.slice(0, limits.healthNamesMax) };
}

const minute = 60;
/** Longer than a busy queue, and longer than an hour's work that was asked for at once. */
const [lateSeconds, veryLateSeconds] = [5 * minute, 60 * minute];
/** So many failed runs are no accident. */
const failedMin = 20;

/** Why the book is not ok, the worst first. */
export function reasonsFor(found: Omit<BookHealth, "verdict" | "reasons">): HealthReason[] {
  const { jobs, runs, schedules, deadLetters, listeners, sinks, paused, size, dropped } = found;
  const reasons: HealthReason[] = [];
  const say = (about: HealthTopic, because: string, isTrouble = false): void =>
    void reasons.push({ verdict: isTrouble ? "trouble" : "attention", about, because });

  const { oldestDue: due } = jobs;
  if (due !== null && due.seconds >= lateSeconds) {
    const idle = jobs.running.count === 0 ? ", and nothing runs" : "";
    const what = `${due.name} in the queue "${due.queue}" has been due for ${span(due.seconds)} and has not started${idle}`;
    say("jobs", `${what}: "jobs explain ${due.id}" says why.`, idle !== "" || due.seconds >= veryLateSeconds);
  }
  if (schedules.late.count > 0) {
    const late = `${many(schedules.late, "schedule is", "schedules are")} due and not decided`;
    say("schedules", `${late}: no process that works on the book fires them.`, true);
  }
  const share = runs.ended === 0 ? 0 : runs.failed / runs.ended;
  if (share > 0.05) {
    const failed = `${runs.failed} of ${runs.ended} runs failed in the last 24 hours`;
    say("runs", `${failed}: "errors" lists why.`, share > 0.1 && runs.failed >= failedMin);
  }
  if (deadLetters.count > 0) {
    const waiting = many(deadLetters, "dead letter waits", "dead letters wait");
    say("dead-letters", `${waiting} to be redriven or discarded.`);
  }
  for (const [about, one, { items }] of [
    ["listeners", "listener", listeners],
    ["sinks", "sink", sinks],
  ] as const) {
    const [worst] = items.filter(({ seconds }) => seconds >= lateSeconds);
    if (worst === undefined) continue;
    const held = worst.paused ? ", because it is paused" : "";
    const what = `the ${one} "${worst.name}" is ${span(worst.seconds)} behind${held}`;
    say(
      about,
      `${what}, with ${many({ count: worst.events, more: worst.more }, "event", "events")} before it.`,
      held === "" && worst.seconds >= veryLateSeconds,
    );
  }
  const holding = paused.queues.filter(({ holds }) => holds);
  if (holding.length > 0) {
    const names = holding.map(({ name }) => `"${name}"`).join(", ");
    say("queues", `${holding.length === 1 ? "a paused queue holds" : "paused queues hold"} jobs back: ${names}.`);
  }
  if (dropped !== null && dropped.runs + dropped.logs + dropped.events > 0) {
    const lost = `${dropped.events} events, ${dropped.runs} runs and ${dropped.logs} log lines`;
    say("telemetry", `live listeners lost ${lost} in the last 24 hours, because there were too many at once.`);
  }
  if (size !== null && size.walBytes > 4 * limits.walBytesMax) {
    const reader = "a read or a backup that has been under way for long keeps it from shrinking";
    say("book", `the write-ahead log has ${Math.round(size.walBytes / 1_048_576)} MiB: ${reader}.`);
  }
  return reasons.toSorted((one, other) => rank[one.verdict] - rank[other.verdict]);
}

const rank = { trouble: 0, attention: 1 } as const;

function many({ count, more }: Counted, one: string, several: string): string {
  return `${more ? "over " : ""}${count} ${count === 1 && !more ? one : several}`;
}

function span(seconds: number): string {
  const [size, unit] = seconds >= 172_800 ? [86_400, "days"] : seconds >= 7200 ? [3600, "hours"] : [60, "minutes"];
  return `${Math.floor(seconds / size)} ${unit}`;
}
