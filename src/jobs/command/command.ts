// command(): a job that runs a declared program.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { checkCount } from "../../core/count.ts";
import { invalid, describeError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { jsonSchemaOf } from "../../core/standard-schema.ts";
import { refuseUnknown, nearest } from "../../core/suggest.ts";
import { defineJob, jobOptionNames, type Job, type JobOptions } from "../define.ts";
import { checkPatterns, collectArtifacts, type Artifacts } from "./artifacts.ts";
import { runVariable, commandError, runProgram, type CommandEnvironment, type ProgramEnd } from "./program.ts";
import { operandsFrom } from "./code-places.ts";
import { join, resolve } from "node:path";
import { killPoint } from "../../core/fact.ts";
import { thisProcess } from "../../telemetry/process-identity.ts";
import type { RunContext } from "../run/run.ts";
import type { Engine } from "../engine.ts";
import { beginCommand, endCommand, noteProcess, endOrphan, type CommandEnding } from "./command-record.ts";
import { openLog, type CommandLog, type LogFile } from "./log-file.ts";

/** All options of a job but its handler, and the program. */
export type CommandOptions<Params> = Omit<JobOptions<Params, CommandResult, never>, "run"> & {
  /** The program and its arguments; `{name}` stands for a param, inside one argument. There is no shell. */
  readonly argv: readonly string[];
  /** The folder in which it runs; default that of the worker. */
  readonly cwd?: string;
  /** What it gets of the worker's environment, by name, and pairs of its own; default `["PATH"]`. */
  readonly env?: CommandEnvironment;
  /** Patterns, relative to `cwd`, of the files it makes: those that changed during the run are listed in its result. */
  readonly artifacts?: readonly string[];
  /** How much of its output is kept; default and at most 10 MiB. */
  readonly logBytesMax?: number;
};

const own = ["argv", "cwd", "env", "artifacts", "logBytesMax"] as const;

/** Defines a job that runs a program. It fails when the program's exit code is not 0.
 *
 *  ```ts
 *  const thumbnail = command("thumbnail", {
 *    params: z.object({ input: z.string(), width: z.number() }),
 *    argv: ["convert", "./{input}", "-resize", "{width}x", "out/{input}.png"],
 *    cwd: "pictures",
 *    artifacts: ["out/*.png"],
 *  });
 *  ``` */
export function command<Schema extends StandardSchemaV1>(
  name: string,
  options: CommandOptions<StandardSchemaV1.InferOutput<Schema>> & { readonly params: Schema },
): Job<StandardSchemaV1.InferInput<Schema>, CommandResult>;
/** Without a schema the params are whatever fills the placeholders. */
export function command(
  name: string,
  options: CommandOptions<Readonly<Record<string, unknown>>> & { readonly params?: undefined },
): Job<Readonly<Record<string, unknown>>, CommandResult>;
export function command(name: string, options: CommandOptions<never>): Job<never, CommandResult> {
  const { argv, cwd, env = ["PATH"], artifacts = [], logBytesMax = limits.commandLogBytesMax, ...rest } = options;
  refuseUnknown(options, [...jobOptionNames.filter((each) => each !== "run"), ...own], `command "${name}"`);
  const run = (): never => {
    throw invalid("a command has no handler of its own: list it in use, and a worker runs its program");
  };
  const definition = defineJob<never, CommandResult>(name, { ...rest, run });
  if (cwd !== undefined && (typeof cwd !== "string" || cwd === "" || cwd.includes("\0"))) {
    throw invalid(`cwd of command "${name}" is ${quote(cwd)}: give the path of a folder`);
  }
  const plan: CommandPlan = {
    argv: parseArgv(name, argv, namesOf(options.params)),
    cwd,
    env: checkEnvironment(name, env),
    artifacts: checkPatterns(name, artifacts),
    logBytesMax: checkCount(logBytesMax, "logBytesMax", 0, limits.commandLogBytesMax),
  };
  return {
    ...definition,
    builtIn: {
      check: (params) => void fillArgv(name, plan.argv, params),
      run: (engine, params, context) => runCommand(engine, plan, params, context),
    },
  };
}

function checkEnvironment(job: string, env: CommandEnvironment): CommandEnvironment {
  const given: unknown = env;
  if (!Array.isArray(given)) {
    throw invalid(`env of command "${job}" is a list of names and pairs: ["PATH", { LANG: "C" }]`);
  }
  const pairs = (given as readonly unknown[]).flatMap((each) =>
    typeof each === "string" ? [[each, ""]] : Object.entries(each ?? {}),
  );
  for (const [name, value] of pairs as [string, unknown][]) {
    if (!/^[^=\0]+$/.test(name) || name === runVariable) {
      throw invalid(`env of command "${job}" has ${quote(name)}, which is not a name that can be set`);
    }
    if (typeof value !== "string" || value.includes("\0")) {
      throw invalid(`env of command "${job}" sets "${name}" to ${quote(value)}: give a text without U+0000`);
    }
  }
  return env;
}

/** The names of the params, when the schema can describe itself and takes no others. */
function namesOf(schema: StandardSchemaV1 | undefined): string[] | undefined {
  const { properties, additionalProperties } = jsonSchemaOf(schema, "output") ?? {};
  if (typeof properties !== "object" || properties === null || additionalProperties !== false) return undefined;
  return Object.keys(properties);
}

// The arguments have places for params. A value fills its place inside one argument and never makes another: there is no shell,
// and nothing is split. What a value could still do is be taken for an option, so that is refused where it could happen.

/** Texts and places in turn: a text of its own, or the name of a param. */
type Part = { readonly text: string } | { readonly param: string };
export type ArgvTemplate = {
  readonly elements: readonly (readonly Part[])[];
  /** From here on the program takes no argument for an option. */
  readonly operandsFrom: number;
};

/** Reads what the definition says; `known` are the names of the params, where the schema tells them. */
export function parseArgv(job: string, argv: readonly string[], known: readonly string[] | undefined): ArgvTemplate {
  if (!Array.isArray(argv) || argv.length === 0 || !argv.every((each) => typeof each === "string")) {
    throw invalid(`argv of command "${job}" is a list of texts, the program first: ["convert", "{input}", "out.png"]`);
  }
  const elements = argv.map((element) => parseElement(job, element));
  const [program = ""] = argv as readonly string[];
  if (program === "" || paramsOf(elements[0] ?? []).length > 0) {
    const advice = "the program is named in full, without placeholders";
    throw invalid(`argv[0] of command "${job}" is ${quote(program)}: ${advice}`);
  }
  for (const name of elements.flatMap(paramsOf)) {
    if (known === undefined || known.includes(name)) continue;
    const near = nearest(name, known);
    const hint = near === undefined ? `it has ${known.join(", ") || "none"}` : `did you mean {${near}}?`;
    throw invalid(`argv of command "${job}" has {${name}}, which is not one of its params: ${hint}`);
  }
  const given = elements.map((parts, at) => ({ text: argv[at] ?? "", values: paramsOf(parts).length > 0 }));
  return { elements, operandsFrom: operandsFrom(job, given, (at) => beginsWithParam(elements[at])) };
}

function beginsWithParam(parts: readonly Part[] | undefined): boolean {
  return parts?.[0] !== undefined && "param" in parts[0];
}

function parseElement(job: string, element: string): readonly Part[] {
  if (element.includes("\0")) throw invalid(`argv of command "${job}" has an element with U+0000: ${quote(element)}`);
  const parts: Part[] = [];
  for (const [token, name] of element.matchAll(/\{\{|\}\}|\{([a-z_][\w.-]*)\}|[{}]|[^{}]+/gi)) {
    if (name !== undefined) parts.push({ param: name });
    else if (token === "{" || token === "}") {
      const what = `a brace that belongs to no placeholder, in ${quote(element)}`;
      throw invalid(`argv of command "${job}" has ${what}: write {name} for a param, {{ and }} for braces`);
    } else parts.push({ text: token === "{{" || token === "}}" ? token.slice(1) : token });
  }
  return parts;
}

function paramsOf(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => ("param" in part ? [part.param] : []));
}

/** The arguments for these params. Throws, with what to do, before anything is started. */
export function fillArgv(job: string, { elements, operandsFrom: end }: ArgvTemplate, params: unknown): string[] {
  return elements.map((parts, at) => {
    const text = parts.map((part) => ("text" in part ? part.text : valueOf(job, part.param, params))).join("");
    const [first] = parts;
    if (first !== undefined && "param" in first && text.startsWith("-") && at < end) {
      const why = `param "${first.param}" of command "${job}" is ${quote(text)}, which its program would take for an option`;
      const put = `put "--" just before the first such argument in argv, or a prefix such as "./{${first.param}}"`;
      throw invalid(`${why}: ${put}`);
    }
    return text;
  });
}

function valueOf(job: string, name: string, params: unknown): string {
  const has = typeof params === "object" && params !== null && Object.hasOwn(params, name);
  const value: unknown = has ? Reflect.get(params, name) : undefined;
  if (value === undefined) throw invalid(`command "${job}" needs the param "${name}", which is missing`);
  const plain = typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
  const text = plain ? String(value) : value;
  const made = "an argument is made of a text, a number or a boolean";
  if (typeof text !== "string") throw invalid(`param "${name}" of command "${job}" is ${quote(value)}: ${made}`);
  if (text.includes("\0")) throw invalid(`param "${name}" of command "${job}" has U+0000: no argument can hold it`);
  return text;
}

type CommandPlan = {
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

/** One run. Its row is in the book before the program starts: whatever happens here, a recovery knows what to look for. */
async function runCommand(
  engine: Engine,
  plan: CommandPlan,
  given: unknown,
  context: RunContext,
): Promise<CommandResult> {
  const { job, signal } = context;
  if (process.platform === "win32") throw commandError("programs need process groups, which Windows does not have");
  const argv = fillArgv(job.name, plan.argv, given);
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
    const { waitClock: clock } = engine.store;
    const sinceNs = plan.artifacts.length === 0 ? 0n : await file.newTimeNs(clock, signal);
    const { end, stopped } = await runProgram({
      runId: job.runId,
      argv,
      cwd,
      env: plan.env,
      log: file,
      clock,
      signal,
      note: (pid) => noteProcess(engine, job, pid),
    });
    const { log, failure } = await file.close();
    const reason = (): string => describeError(signal.reason).message;
    const { note, interrupted, ...made } = stopped
      ? { ...noArtifacts, note: reason(), interrupted: true }
      : await gather(plan, { cwd, sinceNs, signal });
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

async function gather(plan: CommandPlan, from: Parameters<typeof collectArtifacts>[1]): Promise<Gathered> {
  try {
    return { ...noArtifacts, ...(await collectArtifacts(plan.artifacts, from)) };
  } catch (error) {
    if (from.signal.aborted) return { ...noArtifacts, interrupted: true };
    return { ...noArtifacts, note: `its artifacts could not be collected: ${describeError(error).message}` };
  }
}

function describeEnd([file]: readonly string[], { exitCode, signal }: ProgramEnd): string {
  return `the program ${quote(file)} ${signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`}`;
}
