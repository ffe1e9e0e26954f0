// A program outlives its worker when that is killed: nobody is left to tell it. Whoever recovers the run on the same host
// ends it. A number is not enough for that, since the system gives it to others: the process must have the start that was
// written down, or be one of the same group that carries the run's id in its environment.
import { readdirSync, readFileSync } from "node:fs";
import { defineFact } from "../../core/fact.ts";
import { sql } from "../../storage/sql.ts";
import {
  attempt,
  isProvablyGone,
  pidExists,
  processFields,
  processStarted,
  thisProcess,
  type ProcessIdentity,
} from "../../telemetry/process-identity.ts";
import type { Engine } from "../engine.ts";
import { endCommand, openCommandColumns, type OpenCommand } from "./command-record.ts";
import { readEnd } from "./log-file.ts";
import { runVariable, signalGroupOf, termMs } from "./program.ts";

type Fate = "ended" | "gone" | "unknown";

const notes: Record<Fate, string> = {
  ended: "orphan: it outlived its worker, and was ended when the run was recovered",
  gone: "orphan: its worker was lost, and when the run was recovered the program was gone",
  unknown:
    "orphan: its worker was lost, and whether the program still runs cannot be told on this system; it was left alone",
};

/** A program whose worker was lost has been seen to. */
export const commandOrphaned = defineFact<Orphan>("command.orphaned");
type Orphan = Pick<OpenCommand, "tenant" | "jobId" | "runId" | "pid"> & { readonly fate: Fate };

const orphansMax = 100;
const lookEveryMs = 20;

/** Ends the programs of this host whose runs are over. Those of other hosts are left to them. */
export async function endOrphans(engine: Engine): Promise<void> {
  const { store } = engine;
  const self = thisProcess();
  // A file is on one machine, so programs of an earlier start of it may be judged as well.
  const anyBoot = store.dialect === "sqlite" ? 1 : 0;
  const rows = await store.read<OpenCommand>(sql`select ${openCommandColumns}
    from daybook_run_command command left join daybook_job job on job.tenant_id = command.tenant_id and job.id = command.job_id
    left join daybook_line line on line.seq = job.seq
    where command.ended_at is null and command.host = ${self.host}
      and command.host_namespace is not distinct from ${self.hostNamespace}
      and (${anyBoot} = 1 or command.host_boot is not distinct from ${self.hostBoot})
      and (line.seq is null or line.status <> 'running' or line.run_id is distinct from command.run_id)
    order by command.started_at desc limit ${orphansMax}`);
  await Promise.all(rows.map((row) => endOrphan(engine, row, self)));
}

const underWay = new Map<string, Promise<void>>();

/** A second caller of this process waits for the end that the first one makes. */
export function endOrphan(engine: Engine, row: OpenCommand, self: ProcessIdentity): Promise<void> {
  const known = underWay.get(row.runId);
  if (known !== undefined) return known;
  const ending = seeTo(engine, row, self).finally(() => underWay.delete(row.runId));
  underWay.set(row.runId, ending);
  return ending;
}

async function seeTo(engine: Engine, row: OpenCommand, self: ProcessIdentity): Promise<void> {
  const fate = await fateOf(engine, row, self);
  if (fate === undefined) return;
  const { tenant, runId, jobId, pid, logPath } = row;
  // Another process may have come after our signals and found nobody: who ended it has the last word.
  const over = fate === "ended" ? notes.gone : null;
  if (await endCommand(engine, row, { note: notes[fate], log: await readEnd(logPath) }, over)) {
    commandOrphaned.state({ tenant, jobId, runId, pid, fate });
  }
}

/** Undefined when it is for others to judge. */
async function fateOf(engine: Engine, row: OpenCommand, self: ProcessIdentity): Promise<Fate | undefined> {
  const { host, hostBoot: boot, hostNamespace: namespace } = self;
  if (row.host !== host || boot === null || row.hostBoot !== boot || row.hostNamespace !== namespace) {
    const other = { ...row, pid: row.pid ?? 0 };
    return isProvablyGone(other, self, { sameMachine: engine.store.dialect === "sqlite" }) ? "gone" : undefined;
  }
  if (groupsOfRun(row).length === 0) {
    return row.processStarted === null && row.pid !== null && pidExists(row.pid) ? "unknown" : "gone";
  }
  await endGroups(engine, row);
  return "ended";
}

// They are not our children, so nothing tells when they end: it is looked for.
async function endGroups({ store: { waitClock: clock } }: Engine, row: OpenCommand): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const group of groupsOfRun(row)) signalGroupOf(group, signal);
    const until = clock.monotonic() + termMs;
    while (groupsOfRun(row).length > 0 && clock.monotonic() < until) await clock.sleep(lookEveryMs);
  }
}

/** The groups that are proven to be the run's; none where the system does not tell. */
function groupsOfRun({ runId, pid, processStarted: started }: OpenCommand): number[] {
  if (pid !== null && started !== null && processStarted(pid) === started) return [pid];
  // Its first process is gone, or its number was never written down; the others carry the run's id.
  const groups = new Set<number>();
  for (const member of (attempt(() => readdirSync("/proc")) ?? []).filter((name) => /^\d+$/.test(name))) {
    const [state = "X", , number] = processFields(Number(member)) ?? [];
    const group = Number(number);
    // A zombie has ended.
    if (/[ZX]/.test(state) || (pid !== null && group !== pid) || groups.has(group)) continue;
    // Only the owner may read it, so what can be read may also be ended.
    const environment = attempt(() => readFileSync(`/proc/${member}/environ`, "utf8")) ?? "";
    if (environment.split("\0").includes(`${runVariable}=${runId}`)) groups.add(group);
  }
  return [...groups];
}
