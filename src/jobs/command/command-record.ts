// The row of a program: written before it is started, told its pid at once, and closed when it has ended. While it is
// open, this process or a recovery has to see to it that the program ends. The run that started it shows it as a `CommandRecord`.
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/quote.ts";
import { sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import {
  groupsCarrying,
  isProvablyGone,
  pidExists,
  processStarted,
  thisProcess,
} from "../../telemetry/process-identity.ts";
import type { ProcessIdentity } from "../../telemetry/process-identity.ts";
import type { JobInfo } from "../run/run.ts";
import type { Engine } from "../engine.ts";
import type { Artifacts } from "./artifacts.ts";
import { readEnd, type CommandLog } from "./log-file.ts";
import { defineFact } from "../../core/fact.ts";
import { runVariable, signalGroupOf, termMs } from "./program.ts";

/** What a run knows of the program that it started. */
export type CommandRecord = Artifacts & {
  readonly argv: readonly string[];
  readonly host: string;
  /** Null when it could not be started. */
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** `bytes` is null when nobody saw the end of the output. */
  readonly log: (Omit<CommandLog, "bytes"> & { readonly bytes: number | null }) | null;
  readonly note: string | null;
};

/** The columns of a left join on run_command, for `shape`: null where there was no program. */
export const commandColumns = sql`command.argv as "run.command.argv json", command.host as "run.command.host",
    command.pid as "run.command.pid", command.exit_code as "run.command.exitCode", command.signal as "run.command.signal",
    command.log_path as "run.command.log.path", command.log_bytes as "run.command.log.bytes",
    command.log_truncated as "run.command.log.truncated flag", coalesce(command.log_tail, '') as "run.command.log.tail",
    command.artifacts as "run.command.artifacts json", command.artifacts_left_out as "run.command.artifactsLeftOut",
    command.note as "run.command.note"`;

export type OpenCommand = Omit<ProcessIdentity, "pid"> & {
  readonly tenant: string;
  readonly runId: string;
  readonly jobId: string;
  readonly pid: number | null;
  readonly logPath: string;
};

export const openCommandColumns = sql`command.tenant_id as tenant, command.run_id as "runId", command.job_id as "jobId",
  command.host, command.host_boot as "hostBoot", command.host_namespace as "hostNamespace", command.pid,
  command.process_started as "processStarted", command.log_path as "logPath"`;

/** What is written before a program may be started; undefined when the run is no longer this process's. `before` is what
 *  is left of the run that this one continues. */
export function beginCommand(
  { store }: Engine,
  job: JobInfo,
  { argv, logPath, by }: { argv: readonly string[]; logPath: string; by: ProcessIdentity },
): Promise<{ readonly before: OpenCommand | undefined } | undefined> {
  const unit = async (tx: Tx): Promise<{ readonly before: OpenCommand | undefined } | undefined> => {
    const written = await tx.run(sql`insert into daybook_run_command (tenant_id, run_id, job_id, argv, host, host_boot,
        host_namespace, started_at, log_path)
      select job.tenant_id, held.run_id, job.id, ${JSON.stringify(argv)}, ${by.host}, ${by.hostBoot},
        ${by.hostNamespace}, ${tx.now}, ${logPath}
      from (select seq, run_id from daybook_line where seq = (
          select seq from daybook_job where tenant_id = ${job.tenant} and id = ${job.id})
        and run_id = ${job.runId} and started_at is not null ${forUpdate}) as held
      cross join daybook_job job where job.seq = held.seq`);
    if (written === 0) return undefined;
    const before = await tx.get<OpenCommand>(sql`select ${openCommandColumns}
      from daybook_job job join daybook_run run on run.job_seq = job.retry_of
      join daybook_run_command command on command.tenant_id = run.tenant_id and command.run_id = run.id
      where job.tenant_id = ${job.tenant} and job.id = ${job.id} and command.ended_at is null`);
    return { before };
  };
  return store.write(unit, { tenant: job.tenant });
}

export function noteProcess({ store }: Engine, { tenant, runId }: JobInfo, pid: number): Promise<unknown> {
  const found = processStarted(pid);
  // One that has ended already is a zombie until it is taken note of, which tells nothing apart.
  const started = found === "zombie" ? null : found;
  const noted = sql`update daybook_run_command set pid = ${pid}, process_started = ${started}
    where tenant_id = ${tenant} and run_id = ${runId}`;
  return store.write((tx) => tx.run(noted), { tenant });
}

export type CommandEnding = Pick<CommandRecord, "note"> &
  Partial<Pick<CommandRecord, "exitCode" | "signal" | keyof Artifacts>> & { readonly log?: CommandLog | undefined };

/** Closes the row, once; a second caller changes nothing and hears false. `over` is a note that may be replaced. */
export async function endCommand(
  { store }: Engine,
  { tenant, runId }: Pick<OpenCommand, "tenant" | "runId">,
  { exitCode = null, signal = null, log, artifacts = [], artifactsLeftOut = 0, note }: CommandEnding,
  over: string | null = null,
): Promise<boolean> {
  const close = (tx: Tx): Awaitable<number> =>
    tx.run(sql`update daybook_run_command set ended_at = ${tx.now}, exit_code = ${exitCode}, signal = ${signal},
        log_bytes = ${log?.bytes ?? null}, log_truncated = ${log?.truncated === true ? 1 : 0},
        log_tail = ${log?.tail ?? null}, artifacts = ${JSON.stringify(artifacts)}, artifacts_left_out = ${artifactsLeftOut},
        note = ${note === null ? null : storableText(note, limits.errorMessageBytesMax)}
      where tenant_id = ${tenant} and run_id = ${runId} and (ended_at is null or note = ${over})`);
  return (await store.write(close, { tenant })) === 1;
}

// A program outlives its worker when that is killed: no process is left to tell it. The process that recovers the run on the same
// host ends it. A number is not enough for that, since the system gives it to others: the process must have the start that was
// written down, or be one of the same group that carries the run's id in its environment.

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
  // Each sweep asks, and a process stays what it is.
  const self = store.keep("process identity", thisProcess);
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

/** A second caller of this process waits for the end that the first one makes. */
export function endOrphan(engine: Engine, row: OpenCommand, self: ProcessIdentity): Promise<void> {
  const underWay = engine.store.keep("orphans under way", () => new Map<string, Promise<void>>());
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
  // Another process may have come after our signals and found none: the one that ended it has the last word.
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
  return groupsCarrying(`${runVariable}=${runId}`, pid);
}
