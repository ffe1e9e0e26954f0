// What a user asks of telemetry: how things went over a stretch of time. Counts come from rollups, which lag a second or two
// behind the runs and stay when the runs have left.
import { checkLimit, checkPage, type Page, type PageOptions } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import {
  type Bucket,
  type BucketSpan,
  type AppSummary,
  type Overview,
  readBuckets,
  spanFor,
  readApps,
  readOverview,
} from "./report/overview.ts";
import { readErrors, type ErrorGroup } from "./report/errors.ts";
import { readLogs, type LogEntry, type LogFilter } from "./log.ts";
import { scopeOptions, toScope, type ScopeOptions, type Viewer } from "./report/scope.ts";
import { findSlow } from "./report/slow.ts";
import { summarise, type RunSummary } from "./report/summary.ts";
import { readEvictions, type Eviction } from "./retention/remove.ts";
import { readRunsBySeq, type RunRecord } from "./run.ts";

export type TelemetryReads = {
  /** All runs of the stretch together.
   *
   *  ```ts
   *  const { runs, errors, health } = await book.telemetry.overview({ since: "24h" });
   *  ``` */
  overview(options?: ScopeOptions): Promise<Overview>;
  /** One summary for each job, listener, schedule and call that ran.
   *
   *  ```ts
   *  const { items } = await book.telemetry.summaries({ kind: "schedule", since: "7d" });
   *  for (const { name, runs, errors, lastError } of items) console.log(name, runs, errors, lastError?.message);
   *  ``` */
  summaries(options?: ScopeOptions & PageOptions): Promise<Page<RunSummary>>;
  /** One summary for each app, with its instances. */
  apps(options?: ScopeOptions): Promise<AppSummary[]>;
  /** Errors in groups that look alike, the latest group first. */
  errors(options?: Omit<ScopeOptions, "session"> & PageOptions): Promise<Page<ErrorGroup>>;
  /** The runs that took longest. */
  slow(options?: ScopeOptions & { readonly limit?: number }): Promise<RunRecord[]>;
  /** Runs over time: a bucket for each minute, hour or day. The stretch decides which, unless `by` does. */
  buckets(options?: Omit<ScopeOptions, "session"> & { readonly by?: BucketSpan }): Promise<Bucket[]>;
  /** The lines that runs logged, the newest first. */
  logs(options?: LogFilter & PageOptions): Promise<Page<LogEntry>>;
  /** What retention removed, the latest day first. */
  evictions(options?: { readonly limit?: number }): Promise<Eviction[]>;
};

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function telemetryReads(store: Store, tenant: string, seenBy: string | null = null): TelemetryReads {
  const viewer: Viewer = { tenant, seenBy };
  const paged = [...scopeOptions, "limit", "after"];
  return {
    async overview(options = {}) {
      refuseUnknown(options, scopeOptions, "overview");
      return readOverview(store, await toScope(store, viewer, options));
    },
    async summaries(options = {}) {
      refuseUnknown(options, paged, "summaries");
      const { limit, after } = checkPage(options);
      return summarise(store, await toScope(store, viewer, options), { after: after ?? 0, limit });
    },
    async apps(options = {}) {
      refuseUnknown(options, scopeOptions, "apps");
      return readApps(store, await toScope(store, viewer, options));
    },
    async errors(options = {}) {
      refuseUnknown(options, withoutSession(paged), "errors");
      const { limit, after } = checkPage(options);
      const scope = await toScope(store, viewer, options);
      return readErrors(store, scope, { before: after ?? Number.MAX_SAFE_INTEGER, limit });
    },
    async slow(options = {}) {
      refuseUnknown(options, [...scopeOptions, "limit"], "slow");
      const { limit } = checkPage({ limit: options.limit ?? 20 });
      const found = await findSlow(store, await toScope(store, viewer, options), limit);
      return readRunsBySeq(store, found);
    },
    async buckets(options = {}) {
      refuseUnknown(options, [...withoutSession(scopeOptions), "by"], "buckets");
      const scope = await toScope(store, viewer, options);
      return readBuckets(store, scope, spanFor(scope, options.by));
    },
    async logs(options = {}) {
      refuseUnknown(options, ["level", "name", "app", "since", "until", "limit", "after"], "logs");
      const { limit, after } = checkPage(options);
      return readLogs(store, tenant, options, { before: after ?? Number.MAX_SAFE_INTEGER, limit });
    },
    async evictions(options = {}) {
      refuseUnknown(options, ["limit"], "evictions");
      return readEvictions(store, tenant, checkLimit(options.limit));
    },
  };
}

function withoutSession(names: readonly string[]): readonly string[] {
  return names.filter((name) => name !== "session");
}
