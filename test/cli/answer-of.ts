// The commands as a program uses them: JSON in and out, and codes.
import assert from "node:assert/strict";
import { parsed, parsedError, runCli, startCli, type Ended } from "./run-cli.ts";

type Settings = { readonly cwd?: string; readonly input?: string; readonly env?: Record<string, string> };

/** What a command that does its work says with --json. */
export async function answer(
  args: readonly string[],
  book: string,
  { input, ...settings }: Settings = {},
): Promise<Record<string, unknown>> {
  const whole = [...args, "--book", book, "--json"];
  const { code, stdout, stderr } = await (input === undefined
    ? runCli(whole, settings)
    : runWithInput(whole, input, settings));
  assert.deepEqual([code, stderr], [0, ""], args.join(" "));
  return parsed(stdout);
}

function runWithInput(args: readonly string[], input: string, settings: Settings): Promise<Ended> {
  const { child, ended } = startCli(args, settings);
  child.stdin?.on("error", () => undefined); // most commands read nothing and are gone
  child.stdin?.end(input);
  return ended;
}

/** How a command that cannot do its work refuses it. */
export async function refusal(
  args: readonly string[],
  book: string,
  settings: Omit<Settings, "input"> = {},
): Promise<[exit: number | null, code: string, message: string]> {
  const { code, stdout, stderr } = await runCli([...args, "--book", book, "--json"], settings);
  assert.equal(stdout, "", args.join(" "));
  const error = parsedError(stderr);
  return [code, error.code, error.message];
}

export function items(page: Record<string, unknown>): Record<string, unknown>[] {
  return page["items"] as Record<string, unknown>[];
}
