// What the client and the dashboard are told about the verbs: their routes, the places of their fields, their options on a command
// line, and where times stand in their answers. The schemas themselves would be too much for a page in a browser.
import { optionOf } from "../src/cli/commands.ts";
import type { Schema } from "../src/verbs/field.ts";
import { readRoute } from "../src/verbs/route.ts";
import { nounOf, type NounName } from "../src/verbs/table.ts";
import { fieldsOf, kebab, placesOf, type Verb } from "../src/verbs/verb.ts";
import type { Outputs } from "../src/verbs/wire.ts";

const made = `"npm run openapi" makes this file from the table of verbs (src/verbs), and a test compares it.`;

export function clientRoutes(table: readonly (readonly [key: string, verb: Verb])[]): string {
  const nouns = Map.groupBy(
    table.filter(([, verb]) => readRoute(verb) !== undefined),
    ([key]) => key.split(".")[0] ?? "",
  );
  const lines = [...nouns].flatMap(([noun, verbs]) => [
    `  ${noun}: {`,
    ...verbs.map(([key, verb]) => `    ${key.split(".")[1]}: ${JSON.stringify(routeOf(verb))},`),
    "  },",
  ]);
  const plain = [...nouns.keys()].filter((noun) => nounOf(noun as NounName).plain === true);
  return `// ${made}\nexport const routes = {\n${lines.join("\n")}\n} as const;

/** The nouns whose verbs are called without them. */
export const plainNouns = ${JSON.stringify(plain)} as const;\n`;
}

/** `places`: the fields that are arguments of their own, in their order. The others are in the object behind them. */
function routeOf(verb: Verb): object {
  const of = (kinds: readonly string[]): string[] =>
    fieldsOf(verb).flatMap(([name, { kind }]) => (kinds.includes(kind) ? [name] : []));
  const answer = verb.text ? "text" : verb.lines ? "lines" : verb.stream ? "stream" : "json";
  return {
    route: verb.http,
    places: placesOf(verb).flatMap(({ name, needed }) => (needed ? [name] : [])),
    times: of(["time", "moment"]),
    durations: of(["duration"]),
    lists: of(["list"]),
    answer,
  };
}

/** What the dashboard must know besides, to write a verb as a command. Verbs of which nothing is said are written as their names say. */
export function commandLines(table: readonly (readonly [key: string, verb: Verb])[]): string {
  const lines = table.flatMap(([key, verb]) => {
    const command = readRoute(verb) === undefined ? {} : commandOf(verb);
    return Object.keys(command).length === 0 ? [] : [`  ${JSON.stringify(key)}: ${JSON.stringify(command)},`];
  });
  return `// ${made}
export type CommandOf = {
  /** The fields that have no option: they are given by their places. */
  readonly places?: readonly string[];
  /** Options that are not called as their fields are. */
  readonly options?: Readonly<Record<string, string>>;
  /** Fields whose value is JSON, also where it is a text. */
  readonly json?: readonly string[];
  /** Fields that have an option for no. */
  readonly choices?: readonly string[];
  /** Fields that are given by a line for each name. */
  readonly headers?: readonly string[];
};

export const commands: { readonly [verb: string]: CommandOf } = {
${lines.join("\n")}
};\n`;
}

function commandOf(verb: Verb): object {
  const places = placesOf(verb).map(({ name }) => name);
  const options = fieldsOf(verb).filter(([name]) => !places.includes(name));
  const renamed = options.flatMap(([name, field]) =>
    optionOf(name, field) === `--${kebab(name)}` ? [] : [[name, optionOf(name, field)] as const],
  );
  const of = (kind: string): string[] => fieldsOf(verb).flatMap(([name, field]) => (field.kind === kind ? [name] : []));
  const found = {
    places,
    options: Object.fromEntries(renamed),
    json: of("json"),
    choices: of("choice"),
    headers: of("headers"),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => Object.keys(value).length > 0));
}

/** `1` is a time, a text names another of these, [x] is a list of them, "*" is what stands under any other name. */
export type Times = 1 | string | readonly [Times] | { readonly [name: string]: Times };

export function clientTimes(
  table: readonly (readonly [key: string, verb: Verb])[],
  { outputs, defs }: Outputs,
): string {
  const within = (schema: unknown, seen: readonly string[] = []): Times | undefined => {
    const of = (schema ?? {}) as Record<string, unknown>;
    const name = typeof of["$ref"] === "string" ? (of["$ref"].split("/").at(-1) ?? "") : undefined;
    if (name !== undefined) return seen.includes(name) || holds(defs[name], [...seen, name]) ? name : undefined;
    if (of["x-time"] !== undefined) return 1;
    if (Array.isArray(of["anyOf"])) {
      return of["anyOf"].map((each: unknown) => within(each, seen)).reduce((one, other) => merged(one, other));
    }
    if (of["type"] === "array") {
      const items = within(of["items"], seen);
      return items === undefined ? undefined : [items];
    }
    const others = of["additionalProperties"] === undefined ? [] : [["*", of["additionalProperties"]] as const];
    const found = [...Object.entries((of["properties"] ?? {}) as Record<string, Schema>), ...others].flatMap(
      ([key, each]) => {
        const times = within(each, seen);
        return times === undefined ? [] : [[key, times] as const];
      },
    );
    return found.length === 0 ? undefined : Object.fromEntries(found);
  };
  const holds = (schema: unknown, seen: readonly string[]): boolean => within(schema, seen) !== undefined;
  const lines = (all: readonly (readonly [string, unknown])[]): string =>
    all
      .flatMap(([name, schema]) => {
        const times = within(schema, []);
        return times === undefined ? [] : [`  ${JSON.stringify(name)}: ${JSON.stringify(times)},\n`];
      })
      .join("");
  const routed = table.filter(([, verb]) => readRoute(verb) !== undefined);
  return `// ${made}
import type { Times } from "./answer.ts";

/** Where times stand in the answers. */
export const times: { readonly [verb: string]: Times } = {
${lines(routed.map(([key]) => [key, outputs[key]]))}};

/** The same of the types that several answers have. */
export const named: { readonly [type: string]: Times } = {
${lines(Object.entries(defs))}};\n`;
}

function merged(one: Times | undefined, other: Times | undefined): Times | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (JSON.stringify(one) === JSON.stringify(other)) return one;
  if (typeof one !== "object" || typeof other !== "object" || Array.isArray(one) || Array.isArray(other)) {
    throw new Error(`an answer is ${JSON.stringify(one)} or ${JSON.stringify(other)}: the client could not tell which`);
  }
  const [left, right] = [one, other] as Record<string, Times>[];
  const names = [...new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})])];
  return Object.fromEntries(names.map((name) => [name, merged(left?.[name], right?.[name]) as Times]));
}
