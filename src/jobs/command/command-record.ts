// A program as the run that started it shows it.
import { sql } from "../../storage/sql.ts";
import type { Artifact } from "./artifacts.ts";
import type { CommandLog } from "./log-file.ts";

/** What a run knows of the program that it started. */
export type CommandRecord = {
  readonly argv: readonly string[];
  readonly host: string;
  /** Null when it could not be started. */
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** `bytes` is null when nobody saw the end of the output. */
  readonly log: (Omit<CommandLog, "bytes"> & { readonly bytes: number | null }) | null;
  readonly artifacts: readonly Artifact[];
  /** How many more files there were than are listed. */
  readonly artifactsLeftOut: number;
  /** What else is to be said about its end. */
  readonly note: string | null;
};

/** The columns of a left join on run_command, which are null where there was no program. */
export const commandColumns = sql`command.argv as command_argv, command.host as command_host, command.pid as command_pid,
    command.exit_code, command.signal, command.log_path, command.log_bytes, command.log_truncated, command.log_tail,
    command.artifacts, command.artifacts_left_out, command.note as command_note`;

export type CommandColumns = {
  command_argv: string | null;
  command_host: string | null;
  command_pid: number | null;
  exit_code: number | null;
  signal: string | null;
  log_path: string | null;
  log_bytes: number | null;
  log_truncated: number | null;
  log_tail: string | null;
  artifacts: string | null;
  artifacts_left_out: number | null;
  command_note: string | null;
};

export function toCommand(row: CommandColumns): CommandRecord | null {
  if (row.command_argv === null) return null;
  const { log_path: path, log_bytes: bytes } = row;
  return {
    argv: JSON.parse(row.command_argv) as string[],
    host: row.command_host ?? "",
    pid: row.command_pid,
    exitCode: row.exit_code,
    signal: row.signal,
    log: path === null ? null : { path, bytes, truncated: row.log_truncated === 1, tail: row.log_tail ?? "" },
    artifacts: JSON.parse(row.artifacts ?? "[]") as Artifact[],
    artifactsLeftOut: row.artifacts_left_out ?? 0,
    note: row.command_note,
  };
}
