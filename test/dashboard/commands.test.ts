// "Copy as" of every verb of the table: a shell and the command line read from it what the page asks.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { Command } from "commander";
import { addVerb } from "../../src/cli/commands.ts";
import { readInput } from "../../src/cli/read-input.ts";
import { routes } from "../../src/client/routes.ts";
import type { RouteOf } from "../../src/client/request.ts";
import { commandLine } from "../../src/dashboard/state/command-line.ts";
import { exampleInput } from "../../src/verbs/example.ts";
import type { Field } from "../../src/verbs/field.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import { fieldsOf, nameOf, type Verb } from "../../src/verbs/verb.ts";

type Input = Readonly<Record<string, unknown>>;

const table = (await everyVerb()).filter(([key]) => routeOf(key) !== undefined);
const server = "http://127.0.0.1:4700/a b";

test("a shell and the command line read from a copied command what its page asks, for every verb of the table", async () => {
  const asked = table.flatMap(([key, verb]) => inputsOf(verb).map((input) => ({ key, verb, input })));
  const lines = asked.map(({ key, input }) =>
    commandLine(key, new Map(Object.entries(input)), { of: routeOf(key) as RouteOf, server, tenant: "it's" }),
  );

  const words = wordsOfShell(lines);

  assert.equal(words.length, asked.length);
  for (const [at, { verb, input }] of asked.entries()) {
    assert.deepEqual(await readBack(verb, words[at] ?? []), { input, server, tenant: "it's" }, lines[at] ?? "");
  }
});

test("times and durations that a page keeps as numbers are words of the command line", () => {
  const of = routeOf("jobs.enqueue") as RouteOf;

  const line = commandLine(
    "jobs.enqueue",
    new Map<string, unknown>([
      ["name", "mail"],
      ["at", 0],
      ["timeout", 500],
    ]),
    {
      of,
      server: "http://127.0.0.1:4700",
      tenant: null,
    },
  );

  assert.equal(
    line,
    "daybook jobs enqueue mail --at=1970-01-01T00:00:00.000Z --timeout=500ms --server=http://127.0.0.1:4700",
  );
});

/** What its examples stand for, and every field at once with values that are hard to write. */
function inputsOf(verb: Verb): Input[] {
  const examples = verb.examples.map((example) => exampleInput(verb, example)).filter((input) => input !== null);
  const whole = Object.fromEntries(fieldsOf(verb).map(([name, field]) => [name, hardest(name, field)]));
  return [...examples, whole];
}

const hardText = `-it's "$HOME" \`id\` \\ !! ${"\n"}<img onerror> é`;

function hardest(name: string, { kind, schema }: Field): unknown {
  if (name === "backoff") return ["10s", "1m"];
  const { enum: words, minimum = 0 } = schema as { readonly enum?: readonly string[]; readonly minimum?: number };
  if (kind === "word") return words?.at(-1);
  if (kind === "whole") return minimum;
  if (kind === "flag") return true;
  if (kind === "choice") return false;
  if (kind === "json") return hardText;
  if (kind === "rate") return { max: 10, per: "1m" };
  if (kind === "headers") return { accept: "text/plain", "x-note": hardText.replace("\n", "") };
  if (kind === "time" || kind === "moment") return "2026-01-31T09:30:00Z";
  if (kind === "duration") return "1h30m";
  if (kind !== "list") return hardText;
  const items = schema["items"] as { readonly enum?: readonly string[] };
  return name === "key" ? [hardText] : (items.enum?.slice(0, 2) ?? [hardText, "a,b"]);
}

function wordsOfShell(lines: readonly string[]): string[][] {
  const script = `daybook() { for word; do printf '%s\\0' "$word"; done; printf '\\1'; }\n${lines.join("\n")}\n`;
  return execFileSync("/bin/sh", { input: script, encoding: "utf8" })
    .split("\u0001")
    .slice(0, -1)
    .map((each) => each.split("\0").slice(0, -1));
}

async function readBack(verb: Verb, words: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const program = new Command("daybook").exitOverride().option("--tenant <id>").option("--server <url>");
  program.configureOutput({ writeErr: () => undefined });
  const names = nameOf(verb).split(" ");
  const group = names.length === 1 ? program : program.command(names[0] ?? "");
  const read = Promise.withResolvers<Readonly<Record<string, unknown>>>();
  // What a field says against a value is tested where the field is.
  addVerb(group, { ...verb, input: unchecked(verb) }, { isDefault: false }, async (command) => {
    const input = await readInput(command, { ...verb, check: () => undefined, input: unchecked(verb) });
    const { tenant, server: address } = program.opts<{ tenant: string; server: string }>();
    read.resolve({ input, server: address, tenant });
  });
  await program.parseAsync([...words], { from: "user" });
  return read.promise;
}

function unchecked({ input }: Verb): Verb["input"] {
  return Object.fromEntries(Object.entries(input).map(([name, field]) => [name, { ...field, check: () => undefined }]));
}

function routeOf(key: string): RouteOf | undefined {
  const [noun = "", name = ""] = key.split(".");
  return (routes as Readonly<Record<string, Readonly<Record<string, RouteOf>>>>)[noun]?.[name];
}
