// Whatever ran: what telemetry says of it is what one would count by hand, before and after the runs have left.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Store } from "../../src/storage/store.ts";
import { listRuns } from "../../src/telemetry/runs.ts";
import { retainTelemetry } from "../../src/telemetry/retention/retain.ts";
import { policyAt } from "../telemetry/policy.ts";
import { durationBounds } from "../../src/telemetry/rollup/series.ts";
import { fingerprint } from "../../src/telemetry/rollup/write.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { startSession, type SessionKey } from "../../src/telemetry/session.ts";
import { runStatuses, type RunStatus } from "../../src/telemetry/run.ts";
import { telemetryReads } from "../../src/telemetry/telemetry.ts";
import { backends, openTestStore } from "../support/open-test.ts";
import { fc, isProof } from "../support/property.ts";
import { insertRuns, type RawRun } from "../telemetry/raw-run.ts";

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const now = Date.UTC(2026, 5, 10, 9, 30, 20);
const failed: readonly RunStatus[] = ["error", "timed_out", "lost"];

type Run = RawRun & { readonly id: string; readonly status: RunStatus };

const anyRun = fc.record({
  name: fc.constantFrom("lamp", "blinds", "door"),
  kind: fc.constantFrom("listener", "listener", "schedule"),
  // Minutes that are shared, edges of hours and days, and anything.
  startedAt: fc.oneof(
    fc.nat({ max: 4 * day }).map((ago) => now - ago),
    fc.nat({ max: 90 }).map((hours) => now - (now % hour) - hours * hour - (hours % 3)),
    fc.nat({ max: 5 * minute }).map((ago) => now - 2 * day - ago),
  ),
  durationMs: fc.nat({ max: 4000 }).map((quarters) => quarters / 4),
  status: fc.constantFrom(...runStatuses, "success", "success", "success"),
  app: fc.constantFrom(undefined, "home", "garden"),
  instance: fc.nat({ max: 1 }),
  which: fc.nat({ max: 3 }),
  session: fc.nat({ max: 2 }),
});

const anyStory = fc.record({
  runs: fc.array(anyRun, { maxLength: 60 }),
  foldsAfter: fc.array(fc.nat({ max: 60 }), { maxLength: 3 }),
  since: fc.nat({ max: 4 * day }),
  length: fc.integer({ min: 1, max: 4 * day }),
  keepMs: fc.nat({ max: 4 * day }),
});

let tenants = 0;
const sessions: SessionKey[] = [];

for (const backend of backends) {
  describe(`telemetry as counted by hand on ${backend}`, () => {
    test("summaries, cards, apps, errors, buckets, lists and the slowest", async (t) => {
      const clock = manualClock({ at: now - 5 * day });
      const { store } = await openTestStore(t, backend, { clock });
      for (let n = 0; n < 2; n++) sessions.push(await store.write((tx) => startSession(tx, thisProcess(), "{}")));
      clock.step(5 * day);
      await fc.assert(
        fc.asyncProperty(anyStory, async (story) => {
          const tenant = `t${tenants++}`;
          const runs = await write(store, tenant, story.runs, story.foldsAfter);
          const since = now - story.since;
          const window = { since, until: Math.min(now + minute, since + story.length) };

          await compareCounts(store, tenant, runs, window);
          await compareLists(store, tenant, runs, window);
          await compareSession(store, tenant, runs);
          const policy = policyAt(now, tenant, { runs: story.keepMs, logs: 0 });
          const dry = await retainTelemetry(store, { ...policy, dryRun: true });
          const gone = await retainTelemetry(store, policy);

          const left = runs.filter((run) => run.kind !== "listener" || run.startedAt >= now - story.keepMs);
          assert.deepEqual([dry.runs, gone.runs], [runs.length - left.length, runs.length - left.length]);
          await compareCounts(store, tenant, runs, window);
          await compareLists(store, tenant, left, window);
        }),
        { numRuns: isProof ? 60 : backend === "sqlite" ? 12 : 6 },
      );
    });
  });
}

async function write(
  store: Store,
  tenant: string,
  drawn: readonly unknown[],
  folds: readonly number[],
): Promise<Run[]> {
  const runs = (drawn as (Omit<Run, "id"> & { which: number; session: number })[]).map(
    ({ which, app, instance, session, ...rest }) => ({
      ...rest,
      tenant,
      id: store.ids(),
      ...(sessions[session] === undefined ? {} : { sessionSeq: sessions[session].seq }),
      ...(app === undefined ? {} : { app, instance: instance ?? 0 }),
      ...(failed.includes(rest.status) ? { error: { type: `E${which % 2}`, message: `no ${which} in "hall"` } } : {}),
    }),
  );
  const ends = [...new Set([...folds.filter((end) => end < runs.length), runs.length])].sort((a, b) => a - b);
  let from = 0;
  for (const to of ends) {
    if (to > from) await insertRuns(store, runs.slice(from, to));
    await foldRuns(store);
    from = to;
  }
  return runs;
}

function byFirst([a]: readonly [string, ...unknown[]], [b]: readonly [string, ...unknown[]]): number {
  return a < b ? -1 : 1;
}

type Window = { readonly since: number; readonly until: number };

/** As rollups answer: whole minutes. */
function within(runs: readonly Run[], { since, until }: Window): Run[] {
  const [from, to] = [since - (since % minute), Math.ceil(until / minute) * minute];
  return runs.filter((run) => run.startedAt >= from && run.startedAt < to);
}

function tally(runs: readonly Run[]) {
  const errors = runs.filter((run) => failed.includes(run.status)).length;
  const rate = runs.length === 0 ? null : (runs.length - errors) / runs.length;
  const health =
    rate === null ? null : rate === 1 ? "excellent" : rate >= 0.95 ? "good" : rate >= 0.9 ? "warning" : "critical";
  const byStatus = Object.fromEntries(runStatuses.map((one) => [one, runs.filter((run) => run.status === one).length]));
  return { runs: runs.length, byStatus, errors, successRate: rate, health };
}

type Took = Awaited<ReturnType<ReturnType<typeof telemetryReads>["overview"]>>["durationMs"];

function assertDurations(said: Took, runs: readonly Run[]): void {
  if (runs.length === 0) return assert.equal(said, null);
  const sorted = runs.map((run) => run.durationMs).toSorted((a, b) => a - b);
  assert.equal(said?.max, sorted.at(-1));
  assert.ok(Math.abs((said?.mean ?? 0) - sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length) < 1e-6);
  const bucket = (ms: number): number => durationBounds.findIndex((bound) => ms <= bound);
  for (const [p, value] of [
    [0.5, said?.p50],
    [0.95, said?.p95],
    [0.99, said?.p99],
  ] as const) {
    const truth = sorted[Math.max(1, Math.ceil(p * sorted.length)) - 1] ?? 0;
    assert.equal(bucket(value ?? Number.NaN), bucket(truth), `p${p}: ${value} for ${truth}`);
  }
}

async function compareCounts(store: Store, tenant: string, all: readonly Run[], window: Window): Promise<void> {
  const reads = telemetryReads(store, tenant);
  const runs = within(all, window);
  const keyOf = ({ kind, name, app, instance }: Partial<Run>): string =>
    `${kind} ${name} ${app ?? ""} ${instance ?? -1}`;

  const { items, next } = await reads.summaries({ ...window, limit: 500 });
  const groups = Map.groupBy(runs, keyOf);
  assert.equal(next, null);
  assert.equal(items.length, groups.size);
  for (const { kind, name, app, durationMs, lastError, ...counts } of items) {
    const own = groups.get(keyOf({ kind, name, app: app?.key, instance: app?.instance } as Partial<Run>)) ?? [];
    assert.deepEqual(counts, tally(own));
    assertDurations(durationMs, own);
    const last = own.findLast((run) => failed.includes(run.status));
    assert.deepEqual(
      lastError,
      last === undefined ? null : { runId: last.id, at: last.startedAt, status: last.status, ...last.error },
    );
  }

  const { since, until, byKind, sessionsRunning, dropped, durationMs, ...cards } = await reads.overview(window);
  assert.deepEqual(cards, tally(runs));
  assertDurations(durationMs, runs);
  assert.deepEqual(
    byKind.map(({ kind, runs: count }) => [kind, count]),
    [...Map.groupBy(runs, (run) => run.kind ?? "")].map(([kind, own]) => [kind, own.length] as const).sort(byFirst),
  );
  const apps = await reads.apps(window);
  assert.deepEqual(
    apps.map(({ app, runs: count, health }) => [app, count, health]),
    [
      ...Map.groupBy(
        runs.filter((run) => run.app !== undefined),
        (run) => run.app ?? "",
      ),
    ]
      .map(([app, own]) => [app, own.length, tally(own).health] as const)
      .sort(byFirst),
  );

  const errors = await reads.errors({ ...window, limit: 500 });
  const alike = Map.groupBy(
    runs.filter((run) => failed.includes(run.status)),
    (run) => `${keyOf(run)} ${fingerprint(run.error?.type ?? "", run.error?.message ?? "")}`,
  );
  assert.deepEqual(
    errors.items.map(({ runs: count, last, firstAt }) => [count, last.runId, firstAt]),
    [...alike.values()]
      .map((own) => [own.length, own.at(-1)?.id, Math.min(...own.map((run) => run.startedAt))] as const)
      .sort((a, b) => all.findIndex((run) => run.id === b[1]) - all.findIndex((run) => run.id === a[1])),
  );

  const buckets = await reads.buckets({ ...window, by: "hour" });
  const from = since - (since % hour);
  const counted = all.filter((run) => run.startedAt >= from && run.startedAt < from + buckets.length * hour);
  for (const bucket of buckets) {
    const own = counted.filter((run) => run.startedAt >= bucket.at && run.startedAt < bucket.at + hour);
    assert.deepEqual([bucket.runs, bucket.errors], [own.length, tally(own).errors]);
  }
  assert.ok(until > since && sessionsRunning === 2 && dropped?.runs === 0);
}

async function compareSession(store: Store, tenant: string, all: readonly Run[]): Promise<void> {
  const [one] = sessions.slice(-2);
  const own = all.filter((run) => run.sessionSeq === one?.seq);
  const reads = telemetryReads(store, tenant);
  const session = { session: one?.id ?? "" };

  const slow = await reads.slow({ ...session, limit: 5 });
  const slowest = own.map((run) => run.durationMs).toSorted((a, b) => b - a);
  assert.deepEqual(
    slow.map((run) => run.durationMs),
    slowest.slice(0, 5),
  );
  assert.equal((await reads.overview(session)).runs, own.length);
  const { items } = await reads.summaries({ ...session, limit: 500 });
  const lasts = items.flatMap(({ lastError }) => lastError?.runId ?? []).toSorted();
  const keyOf = ({ kind, name, app, instance }: Run): string => `${kind} ${name} ${app} ${instance}`;
  const bad = Map.groupBy(
    own.filter((run) => failed.includes(run.status)),
    keyOf,
  );
  assert.deepEqual(lasts, [...bad.values()].map((runs) => runs.at(-1)?.id ?? "").toSorted());
}

async function compareLists(store: Store, tenant: string, all: readonly Run[], window: Window): Promise<void> {
  const newest = all.toReversed();
  const exact = newest.filter((run) => run.startedAt >= window.since && run.startedAt < window.until);
  const ids = (runs: readonly { readonly id: string }[]): string[] => runs.map((run) => run.id);

  const pages: string[] = [];
  for (let after: string | null | undefined; after !== null;) {
    const page = await listRuns(store, tenant, { ...window, limit: 7, ...(after === undefined ? {} : { after }) });
    pages.push(...ids(page.items));
    after = page.next;
  }
  assert.deepEqual(pages, ids(exact));
  const few = { limit: 10 };
  for (const status of ["success", "error"] as const) {
    const { items } = await listRuns(store, tenant, { status, ...few });
    assert.deepEqual(ids(items), ids(newest.filter((run) => run.status === status).slice(0, 10)));
  }
  const { items } = await listRuns(store, tenant, { kind: "listener", name: "lamp", app: "home", ...few });
  const lamps = newest.filter((run) => run.kind === "listener" && run.name === "lamp" && run.app === "home");
  assert.deepEqual(ids(items), ids(lamps.slice(0, 10)));

  const slow = await telemetryReads(store, tenant).slow({ ...window, limit: 5 });
  const slowest = within(all, window).toSorted((a, b) => b.durationMs - a.durationMs);
  // Of those that took equally long any may be there; those that have left leave their place empty.
  const wanted = slowest.slice(0, 5).map((run) => run.durationMs);
  const found = slow.map((run) => run.durationMs);
  assert.deepEqual(
    found,
    found.toSorted((a, b) => b - a),
  );
  assert.ok(found.every((ms) => slowest.some((run) => run.durationMs === ms)));
  if (all.length > 0 && isWhole.get(store) !== tenant) assert.deepEqual(found, wanted);
  isWhole.set(store, tenant);
}

// After retention the rollups lead to minutes whose runs have left.
const isWhole = new WeakMap<Store, string>();
