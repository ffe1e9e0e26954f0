// One run of a declared program, from its arguments to its end. The row is in the book before the program is started, so
// whatever happens to this process, somebody knows what to look for.
import { resolve } from "node:path";
import { describeError } from "../../core/error.ts";
import { killPoint } from "../../core/fault.ts";
import { quote } from "../../core/quote.ts";
import { thisProcess } from "../../telemetry/process-identity.ts";
import type { RunContext } from "../context.ts";
import type { Engine } from "../engine.ts";
import { fillArgv, type ArgvTemplate } from "./argv.ts";
import { collectArtifacts, type Artifact, type Artifacts } from "./artifacts.ts";
import { beginCommand, endCommand, type CommandEnding } from "./command-row.ts";
import type { CommandEnvironment } from "./environment.ts";
import { logPath, openLog, type CommandLog, type LogFile, type LogSummary } from "./log-file.ts";
import { endOrphan } from "./orphan.ts";
import { commandError, type ProgramEnd } from "./program.ts";
import { supervise } from "./supervise.ts";

export type CommandPlan = {
  readonly argv: ArgvTemplate;
  readonly cwd: string | undefined;
  readonly env: CommandEnvironment;
  readonly artifacts: readonly string[];
  readonly logBytesMax: number;
};

/** How a program ended that ended well. */
export type CommandResult = {
  readonly exitCode: number;
  readonly signal: null;
  readonly log: CommandLog;
  readonly artifacts: readonly Artifact[];
  /** How many more files there were than are listed. */
  readonly artifactsLeftOut: number;
};

export async function runCommand(
  engine: Engine,
  plan: CommandPlan,
  params: unknown,
  context: RunContext,
): Promise<CommandResult> {
  const { job } = context;
  if (process.platform === "win32") throw commandError("programs need process groups, which Windows does not have");
  const argv = fillArgv(job.name, plan.argv, params);
  const by = thisProcess();
  const begun = await beginCommand(engine, job, { argv, logPath: logPath(engine.files, job.runId), by });
  if (begun === undefined) {
    throw commandError("the job is no longer this process's, so its program was not started");
  }
  killPoint("command.begun");
  const close = (ending: CommandEnding): Promise<unknown> =>
    // The run's own ending says the same, and is kept until it is written.
    endCommand(engine, job, ending).catch((error: unknown) => context.log(describeError(error).message, {}, "error"));
  let log: LogFile | undefined;
  try {
    // A program that was left by the last try must not run beside this one.
    if (begun.before !== undefined) await endOrphan(engine, begun.before, by);
    log = await makeLog(engine, plan, job.runId);
    const cwd = resolve(plan.cwd ?? ".");
    const { end, stopped } = await supervise(engine, context, log, { ...plan, argv, cwd });
    const summary = await log.close();
    const made = stopped ? noArtifacts : await gather(plan, cwd, log, context.signal);
    const note = [summary.failure, made.failure, stopped ? reasonOf(context.signal) : null].filter(
      (each) => each !== null,
    );
    await close({ ...end, log: summary, artifacts: made, note: note.join("; ") || null });
    if (stopped || made.interrupted) throw commandError(`${reasonOf(context.signal)}; ${describeEnd(argv, end)}`);
    return resultOf(argv, end, summary, made);
  } catch (error) {
    // Does nothing when the end has been written.
    const summary = await log?.close().catch(() => undefined);
    await close({ ...(summary === undefined ? {} : { log: summary }), note: describeError(error).message });
    throw error;
  }
}

async function makeLog({ files }: Engine, { logBytesMax }: CommandPlan, runId: string): Promise<LogFile> {
  try {
    return await openLog(files, runId, logBytesMax);
  } catch (error) {
    throw commandError(`its log could not be made in ${quote(files)}: ${describeError(error).message}`, error);
  }
}

type Gathered = Artifacts & { readonly failure: string | null; readonly interrupted: boolean };
const noArtifacts: Gathered = { found: [], leftOut: 0, failure: null, interrupted: false };

async function gather(plan: CommandPlan, cwd: string, log: LogFile, signal: AbortSignal): Promise<Gathered> {
  try {
    const made = await collectArtifacts(plan.artifacts, { cwd, sinceNs: log.madeAtNs, signal });
    return { ...noArtifacts, ...made };
  } catch (error) {
    if (signal.aborted) return { ...noArtifacts, interrupted: true };
    return { ...noArtifacts, failure: `its artifacts could not be collected: ${describeError(error).message}` };
  }
}

function resultOf(argv: readonly string[], end: ProgramEnd, summary: LogSummary, made: Artifacts): CommandResult {
  const { exitCode, signal } = end;
  const { failure: _failure, ...log } = summary;
  if (exitCode !== 0 || signal !== null) {
    const last = lastLines(log.tail);
    throw commandError(describeEnd(argv, end) + (last === "" ? " and said nothing" : `. It said last:\n${last}`));
  }
  return { exitCode, signal: null, log, artifacts: made.found, artifactsLeftOut: made.leftOut };
}

function describeEnd([file]: readonly string[], { exitCode, signal }: ProgramEnd): string {
  return `the program ${quote(file)} ${signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`}`;
}

function lastLines(tail: string): string {
  return tail.trimEnd().split("\n").slice(-10).join("\n").slice(-2000);
}

function reasonOf(signal: AbortSignal): string {
  return describeError(signal.reason).message;
}
