// A tool is a verb as an assistant sees it: its name, what it is for, what it takes, what it answers, and whether it changes anything.
import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { DaybookError } from "../../core/error.ts";
import { exampleInput } from "../../verbs/example.ts";
import type { Schema } from "../../verbs/field.ts";
import { fieldsOf, inputSchema, kebab, nameOf, type Role, type Verb } from "../../verbs/verb.ts";
import type { Outputs } from "../../verbs/wire.ts";
import { mayCall, roleFor } from "../policy.ts";

/** What tools may do at most, whoever calls them. */
export const allowances = ["read", "operate", "admin"] as const;
export type Allow = (typeof allowances)[number];

/** Who calls. A tenant of null is the whole book. */
export type McpCaller = { readonly role: Role; readonly tenant: string | null; readonly tokenId?: string | null };

export type VerbTool = { readonly key: string; readonly verb: Verb; readonly tool: Tool };

/** The tools of all verbs but those that name files of this machine. */
export function toolsOf(verbs: readonly (readonly [key: string, verb: Verb])[], outputs: Outputs): VerbTool[] {
  const reached = verbs.filter(([, { local }]) => local !== true);
  const names = new Map(reached.map(([, verb]) => [nameOf(verb), toolName(verb)]));
  return reached.map(([key, verb]) => ({
    key,
    verb,
    tool: {
      name: toolName(verb),
      title: nameOf(verb),
      description: describe(verb, names),
      inputSchema: { ...inputSchema(verb), type: "object" },
      ...outputOf(key, verb, outputs),
      annotations: annotationsOf(verb),
    },
  }));
}

/** `jobs_run_now`: the words of the verb, in the letters that every client takes. */
export function toolName(verb: Pick<Verb, "words">): string {
  return nameOf(verb).replaceAll(/[ -]/g, "_");
}

const ranks = { read: 0, operate: 1, admin: 2 } as const;

/** Why this caller is not given the tool; undefined when it is. */
export function whyNot({ verb, tool }: VerbTool, caller: McpCaller, allow: Allow): DaybookError | undefined {
  const { role, of } = verb;
  const refuse = (why: string): DaybookError => new DaybookError("forbidden", `${tool.name} ${why}`);
  // Who works on jobs from elsewhere changes them, and does nothing else.
  const least = role === "worker" ? "operate" : role;
  if (ranks[least] > ranks[allow]) {
    const now = allow === "read" ? "only reads" : `is allowed to ${allow}`;
    return refuse(
      `needs "${least}", and this server ${now}: whoever runs it can allow more (--allow, or --mcp of serve)`,
    );
  }
  if (mayCall(verb, caller)) return undefined;
  return of === "book" && caller.tenant !== null
    ? refuse(`is about the whole book, and you see the tenant ${JSON.stringify(caller.tenant)} of it alone`)
    : refuse(`is for the role ${roleFor(verb)}, and your token has the role ${caller.role}: use another token`);
}

/** What it is for, in the words of its help; what help says of options and exit codes is said of fields and answers. */
function describe(verb: Verb, names: ReadonlyMap<string, string>): string {
  const { about, more = "", destroys, background, examples } = verb;
  // What takes an id alone needs no example, and nobody is to be shown how to apply before having looked.
  const shown = examples
    .map((each) => exampleInput(verb, each))
    .filter((each) => each !== null && Object.keys(each).length > 1 && !Object.hasOwn(each, "apply"))
    .slice(0, 2);
  const parts = [
    `${capital(forTools(about, verb, names))}.`,
    forTools(more, verb, names),
    streamed(verb),
    destroys === undefined ? "" : dryRun(destroys),
    background !== undefined ? "It may take minutes." : "",
    ...shown.map((each) => `Example: ${JSON.stringify(each)}`),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function dryRun(destroys: true | string): string {
  const when = destroys === true ? "Unless apply is true" : `With ${destroys}, unless apply is true`;
  return `${when}, it only says what it would do and changes nothing.`;
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function streamed({ stream, lines }: Verb): string {
  if (stream === true) return "It is given what happens in the next seconds, not what happened before.";
  return lines === true ? "It is given the first lines." : "";
}

/** What is true of a command alone. */
const ofCommands = /exit code is|Exits with|Ctrl-C|--json|--tenant is|--tenant says/;

function forTools(more: string, verb: Verb, names: ReadonlyMap<string, string>): string {
  const sentences = more.replaceAll(/\s*\n\s*/g, " ").split(/(?<=[.:]) (?=[A-Z])/);
  const options = new Map(
    fieldsOf(verb).map(([name, { schema }]) => [
      kebab(typeof schema["x-one"] === "string" ? schema["x-one"] : name),
      name,
    ]),
  );
  return sentences
    .filter((each) => !ofCommands.test(each))
    .join(" ")
    .replaceAll(/ \((?:exit code )?\d+\)|, exit code \d+/g, "")
    .replaceAll(/--([a-z][a-z-]*)/g, (option, name: string) => options.get(name) ?? option)
    .replaceAll(/"([a-z-]+(?: [a-z-]+)?)"/g, (quoted, words: string) => names.get(words) ?? quoted);
}

/** What only adds something, or can be taken back by another verb. Whatever is not known to is taken to destroy. */
const adds =
  / (?:add|backfill|create|enqueue|link|pause|pin|publish|redrive|replay|resend|resume|retry|submit|trigger|unpin)$/;

function annotationsOf(verb: Verb): Tool["annotations"] {
  const { role, needs, http = "", destroys } = verb;
  const reads = role === "read" || needs === "read";
  return {
    readOnlyHint: reads,
    // What is dry until it is told to apply can destroy all the same.
    destructiveHint: !reads && (destroys !== undefined || !adds.test(nameOf(verb))),
    idempotentHint: reads || String(http).startsWith("PUT") || String(http).startsWith("DELETE"),
    openWorldHint: !reads,
  };
}

/** The schema of the answer on the wire. None where the answer is a text, or may be an operation instead. */
function outputOf(
  key: string,
  { text, background, stream, lines }: Verb,
  { outputs, defs }: Outputs,
): Pick<Tool, "outputSchema"> {
  const schema = outputs[key];
  if (text === true || background !== undefined || (schema === undefined && lines !== true)) return {};
  const used: Record<string, unknown> = {};
  const item = (): unknown => (schema === undefined ? { type: "string" } : wireSchema(schema, defs, used));
  const root =
    stream === true || lines === true
      ? { properties: { items: { type: "array", items: item() }, ended }, required: ["items", "ended"] }
      : rootOf(schema ?? {}, defs, used);
  const properties = { ...(root["properties"] as Schema | undefined), shortened };
  const named = Object.keys(used).length === 0 ? {} : { $defs: used };
  return { outputSchema: { ...root, properties, ...named, type: "object" } };
}

const ended = { type: "boolean", description: "false: more may come after these" };

const shortened = { type: "string", description: "Only in an answer that was too large: what was left out of it." };

/** What a client checks is an object with its properties at hand, so a name at the root is opened. */
function rootOf(schema: Schema, defs: Outputs["defs"], used: Record<string, unknown>): Record<string, unknown> {
  const name = nameOfDef(schema);
  return name === undefined ? wireSchema(schema, defs, used) : wireSchema(defs[name] ?? {}, defs, used);
}

/** The same schema with times as they are on the wire. `used` gathers what it names. */
function wireSchema(schema: Schema, defs: Outputs["defs"], used: Record<string, unknown>): Record<string, unknown> {
  const convert = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(convert);
    return typeof part === "object" && part !== null ? wireSchema(part as Schema, defs, used) : part;
  };
  if (schema["x-time"] !== undefined) return { ...schema, "x-time": undefined, type: "string", format: "date-time" };
  const name = nameOfDef(schema);
  if (name === undefined)
    return Object.fromEntries(Object.entries(schema).map(([word, part]) => [word, convert(part)]));
  if (!Object.hasOwn(used, name)) {
    // Known before it is made, since it may name itself.
    used[name] = {};
    used[name] = wireSchema(defs[name] ?? {}, defs, used);
  }
  return { $ref: `#/$defs/${name}` };
}

function nameOfDef(schema: Schema): string | undefined {
  const ref = schema["$ref"];
  return typeof ref === "string" ? ref.split("/").at(-1) : undefined;
}
