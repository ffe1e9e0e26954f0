// command(): a job that runs a declared program.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { jsonSchemaOf } from "../../core/standard-schema.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { defineJob, jobOptionNames, type Job, type JobOptions } from "../define.ts";
import { fillArgv, parseArgv } from "./argv.ts";
import { checkPatterns } from "./artifacts.ts";
import { runVariable, type CommandEnvironment } from "./program.ts";
import { runCommand, type CommandPlan, type CommandResult } from "./run-command.ts";

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
    argv: parseArgv(name, argv, paramsOf(options.params)),
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
function paramsOf(schema: StandardSchemaV1 | undefined): string[] | undefined {
  const { properties, additionalProperties } = jsonSchemaOf(schema, "output") ?? {};
  if (typeof properties !== "object" || properties === null || additionalProperties !== false) return undefined;
  return Object.keys(properties);
}
