// Retention, the one way in which anything leaves a book for its age: what a person asks for, and what a process that works does
// soon after it began and every hour.
import { retainAccess } from "../access/retain.ts";
import { callKind } from "../calls/call.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid, isDaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { retainEvents, type KeptEvents } from "../events/retain.ts";
import { retainJobs, type RetainJobs } from "../jobs/retain/retain.ts";
import { retainDecisions } from "../schedules/decision.ts";
import { scheduleKind } from "../schedules/schedule.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { readPolicy, takeTurn } from "../telemetry/retention/policy.ts";
import { retainTelemetry } from "../telemetry/retention/retain.ts";
import { auditAge, policyFor, retentionParts, rulesOf, type Policy, type RetainOptions } from "./retention.ts";
import type { Rooms } from "./rooms.ts";

/** What a process that works does once a minute besides: fold what another has left, and once an hour let go what is old.
 *  No caller waits for it, and the next one makes up for a failure. */
export function everyMinute(
  rooms: Pick<Rooms, "store" | "jobs" | "rollUp" | "scheduled" | "log">,
): () => Promise<void> {
  const { store, rollUp, scheduled } = rooms;
  let next = store.clock.monotonic() + limits.retainFirstMs;
  let underWay = false;
  let told = false;
  return async () => {
    rollUp.soon();
    const now = store.clock.monotonic();
    if (now >= next && !underWay) {
      next = now + limits.retainMs;
      underWay = true;
      void retainInTurn(rooms, told ? "info" : "warn")
        .then((said) => (told ||= said))
        .catch((error: unknown) => {
          if (isDaybookError(error) && error.code === "closed") return;
          const why = error instanceof Error ? error.message : quote(error);
          rooms.log.retention(
            "warn",
            { event: "retention.failed", error },
            `retention failed, and is tried again: ${why}`,
          );
        })
        .finally(() => (underWay = false));
    }
    await scheduled.writeForNewTenants();
  };
}

/** Says whether something left. That it left by default, which nobody has said, is worth a line on stderr once. */
async function retainInTurn(rooms: Pick<Rooms, "store" | "jobs" | "log">, first: "info" | "warn"): Promise<boolean> {
  if (!(await rooms.store.write(takeTurn))) return false;
  const { store } = rooms;
  const now = store.time.atLeast();
  const age = await auditAge(store);
  const done = {
    ...(await retain(rooms, null, { apply: true })),
    ...(await retainAccess(store, { now, auditBy: age === false ? null : now - durationMs(age) })),
  };
  const removed = Object.fromEntries(counted.map((part) => [part, done[part]] as const).filter(([, rows]) => rows > 0));
  if (Object.keys(removed).length === 0) return false;
  const byDefault = (await readPolicy(rooms.store)) === "{}";
  const rows = Object.entries(removed).map(([part, count]) => `${part}: ${count}`);
  const message = `retention removed what is old${byDefault ? " by default" : ""} (${rows.join(", ")})`;
  rooms.log.retention(byDefault ? first : "info", { event: "retention.removed", removed, byDefault }, message);
  return true;
}

const counted = ["jobs", "calls", "reservations", "runs", "logs", "events", "decisions", "rollups", "audit"] as const;

/** How many rows of each kind leave. */
export type Retained = {
  /** True: this is what would leave, and nothing did. */
  readonly dryRun: boolean;
  /** What it went by; false: that part stays, or was not asked for. */
  readonly policy: Policy;
  /** Jobs that have ended, those of calls and of apps' schedules among them. */
  readonly jobs: number;
  readonly groups: number;
  readonly steps: number;
  readonly calls: number;
  /** Reservations that have ended: of direct work with it, those made by hand by their age. */
  readonly reservations: number;
  /** Of jobs and of live listeners. */
  readonly runs: number;
  readonly logs: number;
  readonly events: number;
  /** Old events that stay, by the reason. */
  readonly kept: KeptEvents;
  readonly decisions: number;
  /** Counts by minute, hour, day and session, and failures by minute. */
  readonly rollups: number;
  /** The log files of programs that the rows named, and how many of them were deleted: those in the book's own folder. */
  readonly files: readonly string[];
  readonly filesDeleted: number;
  /** In how many transactions. */
  readonly slices: number;
};

/** A null tenant means all of them. */
export async function retain(
  { store, jobs }: Pick<Rooms, "store" | "jobs">,
  tenant: string | null,
  options: RetainOptions = {},
): Promise<Retained> {
  refuseUnknown(options, [...retentionParts, "apply", "signal", "progress"], "retain");
  const { apply = false, signal, progress } = options;
  if (typeof apply !== "boolean") throw invalid(`apply is ${quote(apply)}: true or false`);
  const policy = await policyFor(store, options);
  const now = store.time.atLeast();
  const dryRun = !apply;
  const by = (age: Duration | false): number | null => (age === false ? null : now - durationMs(age));
  const { slices, ...telemetry } = await retainTelemetry(store, {
    tenant,
    runsBy: by(policy.runs),
    logsBy: by(policy.logs),
    rollupsBy: by(policy.rollups),
    bytesMax: policy.sizeMax === false ? null : policy.sizeMax,
    dryRun,
  });
  let sum: Retained = { ...nothing, dryRun, policy, ...telemetry, slices };
  let left = 0;
  const tell = (jobsOfSlice: number): void => progress?.((left += jobsOfSlice), null);
  const asked = { ...jobsBy(policy), now, dryRun, signal, tell };
  const [eventsBy, decisionsBy] = [by(policy.events), by(policy.decisions)];
  for (const id of tenant === null ? await tenantsOf(store) : [tenant]) {
    if (signal?.aborted === true) break;
    const { others, files, ...counts } = await retainJobs(jobs, id, asked);
    sum = add({ ...sum, files: [...sum.files, ...files] }, { ...counts, calls: others[callKind] ?? 0 });
    if (eventsBy !== null) {
      const { kept, ...gone } = await retainEvents(store, id, { by: eventsBy, dryRun });
      sum = { ...add(sum, gone), kept: add(sum.kept, kept) };
    }
    if (decisionsBy !== null) sum = add(sum, await retainDecisions(store, id, { by: decisionsBy, dryRun }));
  }
  return sum;
}

/** Each ended job has one part that says how long it stays. */
function jobsBy({ jobs, calls, runs }: Policy): Pick<RetainJobs, "parts" | "byHand"> {
  const ofCall = sql`job.kind = ${callKind}`;
  const ofApp = sql`job.kind = ${scheduleKind} and job.app is not null`;
  const rules = rulesOf(jobs);
  return {
    parts: [
      { which: sql`(job.kind is null or not (${ofCall} or (${ofApp})))`, rules },
      { which: ofCall, rules: rulesOf(calls) },
      { which: ofApp, rules: rulesOf(runs) },
    ],
    byHand: rules,
  };
}

function add<Sum extends object>(sum: Sum, more: { readonly [Name in keyof Sum]?: number }): Sum {
  const added = Object.entries(more).map(([name, count]) => [name, Number(sum[name as keyof Sum]) + Number(count)]);
  return { ...sum, ...(Object.fromEntries(added) as Partial<Sum>) };
}

const nothing = {
  jobs: 0,
  groups: 0,
  steps: 0,
  calls: 0,
  reservations: 0,
  events: 0,
  kept: { unfinished: 0, deadLettered: 0, unheard: 0 },
  decisions: 0,
  files: [],
  filesDeleted: 0,
};

/** Whoever has jobs or schedules has few rows that say so; of events there may be millions, so each tenant is found by a seek. */
async function tenantsOf(store: Store): Promise<ReadonlySet<string>> {
  const rows = await store.readHeavy<{ id: string }>(
    sql`select tenant_id as id from daybook_lane union select tenant_id from daybook_schedule`,
  );
  const found = new Set(rows.map(({ id }) => id));
  for (let last: string | null = ""; last !== null;) {
    const [row]: { id: string | null }[] = await store.readHeavy(
      sql`select min(tenant_id) as id from daybook_event where tenant_id > ${last}`,
    );
    last = row?.id ?? null;
    if (last !== null) found.add(last);
  }
  return found;
}
