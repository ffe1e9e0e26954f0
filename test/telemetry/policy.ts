// What retention of telemetry goes by, in days, for tests that have a store and no book.
import { limits } from "../../src/core/limits.ts";
import { durationMs, type Duration } from "../../src/core/duration.ts";
import type { TelemetryPolicy } from "../../src/telemetry/retention/retain.ts";

export type Asked = {
  readonly runs?: Duration;
  readonly logs?: Duration;
  readonly rollups?: Duration;
  readonly bytes?: number;
  readonly dryRun?: boolean;
};

/** With the defaults of a book. */
export function policyAt(now: number, tenant: string | null, asked: Asked = {}): TelemetryPolicy {
  const { runs = `${limits.runDays}d`, logs = `${limits.logDays}d`, rollups = `${limits.rollupDays}d` } = asked;
  return {
    tenant,
    runsBy: now - durationMs(runs),
    logsBy: now - durationMs(logs),
    rollupsBy: now - durationMs(rollups),
    bytesMax: asked.bytes ?? limits.telemetryBytesMax,
    dryRun: asked.dryRun ?? false,
  };
}
