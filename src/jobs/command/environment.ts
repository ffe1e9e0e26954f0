// The environment of a program: what the definition names and nothing else, so that the worker's secrets stay its own.
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";

/** Names are taken from the worker's environment, pairs are given. */
export type CommandEnvironment = readonly (string | Readonly<Record<string, string>>)[];

/** Tells every process of a run by whom it was started: an orphan is known by it, and a program may read it. */
export const runVariable = "DAYBOOK_RUN_ID";

export function checkEnvironment(job: string, env: CommandEnvironment): CommandEnvironment {
  const given: unknown = env;
  if (!Array.isArray(given)) {
    throw invalid(`env of command "${job}" is a list of names and pairs: ["PATH", { LANG: "C" }]`);
  }
  for (const each of given as readonly unknown[]) {
    const pairs = typeof each === "string" ? [[each, ""]] : Object.entries(each ?? {});
    for (const [name, value] of pairs) checkPair(job, name, value);
  }
  return env;
}

function checkPair(job: string, name: unknown, value: unknown): void {
  if (typeof name !== "string" || !/^[^=\0]+$/.test(name) || name === runVariable) {
    throw invalid(`env of command "${job}" has ${quote(name)}, which is not a name that can be set`);
  }
  if (typeof value !== "string" || value.includes("\0")) {
    throw invalid(`env of command "${job}" sets "${name}" to ${quote(value)}: give a text without U+0000`);
  }
}

export function environmentOf(env: CommandEnvironment, runId: string): Record<string, string> {
  const made: Record<string, string> = {};
  for (const each of env) {
    if (typeof each !== "string") Object.assign(made, each);
    else if (process.env[each] !== undefined) made[each] = process.env[each];
  }
  return { ...made, [runVariable]: runId };
}
