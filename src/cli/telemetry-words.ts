// Counts in words and cells.
import { styleText } from "node:util";
import { isoTime } from "../core/time.ts";
import type { LastError } from "../telemetry/report/errors.ts";
import type { RunSummary, Tally } from "../telemetry/report/summary.ts";
import { plainCell, showTime } from "./show.ts";

export function lastErrorJson(error: LastError | null): Record<string, unknown> | null {
  return error === null ? null : { ...error, at: isoTime(error.at) };
}

export function summaryJson(summary: RunSummary): Record<string, unknown> {
  return { ...summary, lastError: lastErrorJson(summary.lastError) };
}

export const tallyHead: readonly string[] = ["runs", "errors", "health", "p50", "p95", "max"];

export function tallyCells({ runs, errors, successRate, health, durationMs }: Tally): string[] {
  const rate = successRate === null ? "" : `${(100 * successRate).toFixed(successRate === 1 ? 0 : 1)} %`;
  const took = [durationMs?.p50, durationMs?.p95, durationMs?.max].map((ms) => (ms === undefined ? "" : showMs(ms)));
  return [String(runs), String(errors), health === null ? "" : `${rate} ${showHealth(health)}`, ...took];
}

export function showMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export function ownerCell(app: RunSummary["app"]): string {
  return app === null ? "" : plainCell(`${app.key}[${app.instance}]`, 30);
}

export function lastErrorCell(error: LastError | null): string {
  return error === null ? "" : `${showTime(error.at).ago}: ${plainCell(`${error.type}: ${error.message}`, 50)}`;
}

const colours = { excellent: "green", good: "green", warning: "yellow", critical: "red" } as const;

function showHealth(health: NonNullable<Tally["health"]>): string {
  return styleText(colours[health], health, { stream: process.stdout });
}
