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

/** The columns of a left join on run_command, for `shape`: null where there was no program. */
export const commandColumns = sql`command.argv as "run.command.argv json", command.host as "run.command.host",
    command.pid as "run.command.pid", command.exit_code as "run.command.exitCode", command.signal as "run.command.signal",
    command.log_path as "run.command.log.path", command.log_bytes as "run.command.log.bytes",
    command.log_truncated as "run.command.log.truncated flag", coalesce(command.log_tail, '') as "run.command.log.tail",
    command.artifacts as "run.command.artifacts json", command.artifacts_left_out as "run.command.artifactsLeftOut",
    command.note as "run.command.note"`;
