// Counts in words and cells.
import { isoTime } from "../core/time.ts";
import type { LastError } from "../telemetry/report/errors.ts";
import type { RunSummary } from "../telemetry/report/summary.ts";
import { plainCell } from "./show.ts";

export function lastErrorJson(error: LastError | null): Record<string, unknown> | null {
  return error === null ? null : { ...error, at: isoTime(error.at) };
}

export function ownerCell(app: RunSummary["app"]): string {
  return app === null ? "" : plainCell(`${app.key}[${app.instance}]`, 30);
}
