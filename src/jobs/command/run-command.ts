// One run of a declared program, from its arguments to its end. The row is in the book before the program is started, so
// whatever happens to this process, somebody knows what to look for.
import { join, resolve } from "node:path";
import { describeError } from "../../core/error.ts";
import { killPoint } from "../../core/fault.ts";
import { quote } from "../../core/quote.ts";
import { thisProcess } from "../../telemetry/process-identity.ts";
import type { RunContext } from "../context.ts";
import type { Engine } from "../engine.ts";
import { fillArgv, type ArgvTemplate } from "./argv.ts";
import { collectArtifacts, type Artifacts } from "./artifacts.ts";
import { beginCommand, endCommand, noteProcess, type CommandEnding } from "./command-record.ts";
import { openLog, type CommandLog, type LogFile } from "./log-file.ts";
import { endOrphan } from "./orphan.ts";
import { commandError, runProgram, type CommandEnvironment, type ProgramEnd } from "./program.ts";

export type CommandPlan = {
  readonly argv: ArgvTemplate;
  readonly cwd: string | undefined;
  readonly env: CommandEnvironment;
  readonly artifacts: readonly string[];
  readonly logBytesMax: number;
};

export type CommandResult = Artifacts & {
  readonly exitCode: number;
  readonly signal: null;
  readonly log: CommandLog;
};

export async function runCommand(
  engine: Engine,
  plan: CommandPlan,
  params: unknown,
  context: RunContext,
): Promise<CommandResult> {
  const { job, signal } = context;
  if (process.platform === "win32") throw commandError("programs need process groups, which Windows does not have");
  const argv = fillArgv(job.name, plan.argv, params);
  const by = thisProcess();
  const logPath = join(engine.files, `${job.runId}.log`);
  const begun = await beginCommand(engine, job, { argv, logPath, by });
  if (begun === undefined) {
    throw commandError("the job is no longer this process's, so its program was not started");
  }
  killPoint("command.begun");
  const close = (ending: CommandEnding): Promise<unknown> =>
    // The run's own ending says the same, and is kept until it is written.
    endCommand(engine, job, ending).catch((error: unknown) => context.log(describeError(error).message, {}, "error"));
  let file: LogFile | undefined;
  try {
    // A program that was left by the last try must not run beside this one.
    if (begun.before !== undefined) await endOrphan(engine, begun.before, by);
    file = await openLog(logPath, plan.logBytesMax).catch((error: unknown) => {
      throw commandError(`its log could not be made in ${quote(engine.files)}: ${describeError(error).message}`, error);
    });
    const cwd = resolve(plan.cwd ?? ".");
    const { end, stopped } = await runProgram({
      runId: job.runId,
      argv,
      cwd,
      env: plan.env,
      log: file,
      clock: engine.store.waitClock,
      signal,
      note: (pid) => noteProcess(engine, job, pid),
    });
    const { log, failure } = await file.close();
    const reason = (): string => describeError(signal.reason).message;
    const { note, interrupted, ...made } = stopped
      ? { ...noArtifacts, note: reason(), interrupted: true }
      : await gather(plan, cwd, file, signal);
    const notes = [failure, note].filter((each) => each !== null);
    await close({ ...end, ...made, log, note: notes.join("; ") || null });
    if (interrupted) throw commandError(`${reason()}; ${describeEnd(argv, end)}`);
    if (end.exitCode === 0 && end.signal === null) return { exitCode: 0, signal: null, log, ...made };
    const last = log.tail.trimEnd().split("\n").slice(-10).join("\n").slice(-2000);
    throw commandError(describeEnd(argv, end) + (last === "" ? " and said nothing" : `. It said last:\n${last}`));
  } catch (error) {
    // Does nothing when the end has been written.
    const closed = await file?.close().catch(() => undefined);
    await close({ log: closed?.log, note: describeError(error).message });
    throw error;
  }
}

type Gathered = Artifacts & { readonly note: string | null; readonly interrupted: boolean };
const noArtifacts: Gathered = { artifacts: [], artifactsLeftOut: 0, note: null, interrupted: false };

async function gather(plan: CommandPlan, cwd: string, log: LogFile, signal: AbortSignal): Promise<Gathered> {
  try {
    return { ...noArtifacts, ...(await collectArtifacts(plan.artifacts, { cwd, sinceNs: log.madeAtNs, signal })) };
  } catch (error) {
    if (signal.aborted) return { ...noArtifacts, interrupted: true };
    return { ...noArtifacts, note: `its artifacts could not be collected: ${describeError(error).message}` };
  }
}

function describeEnd([file]: readonly string[], { exitCode, signal }: ProgramEnd): string {
  return `the program ${quote(file)} ${signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`}`;
}
