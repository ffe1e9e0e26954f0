// How long telemetry stays, as a caller may say it.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";

export type RetainOptions = {
  /** Runs of live listeners, and jobs of apps' schedules with their runs; default 7 days. */
  readonly runs?: Duration;
  /** Lines that live listeners logged; default 3 days. A job's lines go with the job. */
  readonly logs?: Duration;
  /** Counts by minute, hour and day; default 400 days. */
  readonly rollups?: Duration;
  /** About how many bytes the runs of live listeners and their lines may take; the oldest leave first. Default 1 GiB. */
  readonly bytes?: number;
  /** Reads only, and says what would be removed. */
  readonly dryRun?: boolean;
};

/** Fixed to one moment for the whole of a retention. */
export type Policy = {
  /** Null: every tenant. */
  readonly tenant: string | null;
  readonly runsBy: number;
  readonly logsBy: number;
  readonly rollupsBy: number;
  readonly bytesMax: number;
  readonly dryRun: boolean;
};

const known = ["runs", "logs", "rollups", "bytes", "dryRun"] as const;

export function toPolicy(now: number, tenant: string | null, options: RetainOptions = {}): Policy {
  refuseUnknown(options, known, "retain");
  const { runs, logs, rollups, bytes = limits.telemetryBytesMax, dryRun = false } = options;
  if (typeof dryRun !== "boolean") throw invalid(`dryRun is ${quote(dryRun)}: true or false`);
  const by = (given: Duration | undefined, days: number, what: string): number =>
    now - (given === undefined ? days * 86_400_000 : durationMs(given, what));
  return {
    tenant,
    runsBy: by(runs, limits.runDays, "runs"),
    logsBy: by(logs, limits.logDays, "logs"),
    rollupsBy: by(rollups, limits.rollupDays, "rollups"),
    bytesMax: checkCount(bytes, "bytes", 0, Number.MAX_SAFE_INTEGER),
    dryRun,
  };
}
