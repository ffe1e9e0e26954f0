// The row of a program: written before it is started, told its pid at once, and closed when it has ended. While it is
// open, somebody has to see to it that the program ends. The run that started it shows it as a `CommandRecord`.
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/storable-text.ts";
import { sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { processStarted, type ProcessIdentity } from "../../telemetry/process-identity.ts";
import type { JobInfo } from "../context.ts";
import type { Engine } from "../engine.ts";
import type { Artifacts } from "./artifacts.ts";
import type { CommandLog } from "./log-file.ts";

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
  // One that has ended already is a zombie until it is taken note of, which tells it from nobody.
  const started = found === "zombie" ? null : found;
  const noted = sql`update daybook_run_command set pid = ${pid}, process_started = ${started}
    where tenant_id = ${tenant} and run_id = ${runId}`;
  return store.write((tx) => tx.run(noted), { tenant });
}

export type CommandEnding = Pick<CommandRecord, "note"> &
  Partial<Pick<CommandRecord, "exitCode" | "signal" | keyof Artifacts>> & { readonly log?: CommandLog | undefined };

/** Closes the row, once; whoever comes second changes nothing and hears false. `over` is a note that may be replaced. */
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
