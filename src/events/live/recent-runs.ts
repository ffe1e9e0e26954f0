// What the latest live runs of this process heard. Their rows are written a moment later, and a job that one of them
// enqueued may publish before that: the chain must not be lost in between, or two that feed each other never end.
import type { Ids } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import type { Cause } from "../../telemetry/cause.ts";

type Heard = NonNullable<Cause["event"]>;

// By the maker of ids, of which each open store has one.
const runs = new WeakMap<Ids, Map<string, Heard>>();

export function rememberRun(ids: Ids, runId: string, heard: Heard): void {
  let known = runs.get(ids);
  if (known === undefined) runs.set(ids, (known = new Map<string, Heard>()));
  known.set(runId, heard);
  if (known.size <= limits.runQueueMax) return;
  const [oldest] = known.keys();
  if (oldest !== undefined) known.delete(oldest);
}

export function recallRun(ids: Ids, runId: string): Heard | undefined {
  return runs.get(ids)?.get(runId);
}
