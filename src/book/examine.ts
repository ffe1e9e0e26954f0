// doctor: asks every room's invariants, one after the other, off the event loop.
import { appChecks } from "../apps/checks.ts";
import { storageChecks } from "../storage/checks.ts";
import type { Reader, Store } from "../storage/store.ts";
import { eventChecks } from "../events/checks.ts";
import { jobChecks } from "../jobs/checks.ts";
import { callChecks } from "../calls/checks.ts";
import { recordChecks } from "../records/checks.ts";
import { scheduleChecks } from "../schedules/checks.ts";
import { telemetryChecks } from "../telemetry/checks.ts";

export type Finding = {
  readonly promise: string;
  readonly name: string;
  /** The first offenders, at most ten. */
  readonly found: readonly string[];
  readonly count: number;
  readonly advice: string;
};

const sourceChecks = [...scheduleChecks, ...eventChecks, ...callChecks, ...appChecks];
export const checks = [...storageChecks, ...telemetryChecks, ...recordChecks, ...jobChecks, ...sourceChecks];

const shownMax = 10;

export function examine(store: Store): Promise<Finding[]> {
  return store.readsLong((reader) => examineBy(store, reader));
}

async function examineBy(store: Store, reader: Reader): Promise<Finding[]> {
  const now = store.clock.now();
  const findings: Finding[] = [];
  for (const { promise, name, find, ask, advice } of checks) {
    const rows = await reader.all<{ finding: unknown }>(find(reader.dialect, now));
    const all = [...(ask?.(store) ?? []), ...rows.map((row) => String(row.finding))];
    if (all.length > 0) findings.push({ promise, name, found: all.slice(0, shownMax), count: all.length, advice });
  }
  return findings;
}
