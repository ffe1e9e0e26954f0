// The page that lists every verb, with all the ways in: made from the table, the document of the API and the library itself.
import type { Field } from "../src/verbs/field.ts";
import { apiPrefix, readRoute } from "../src/verbs/route.ts";
import { kebab, fieldsOf, nameOf, placesOf, type Verb } from "../src/verbs/verb.ts";
import { nounNames, nounOf, verbsOf, type NounName } from "../src/verbs/table.ts";
import { optionOf } from "../src/cli/commands.ts";
import { roleFor } from "../src/server/policy.ts";

/** Says whether a book has a function: `jobs`, `cancel`, or `info` alone. */
type Library = (path: readonly string[]) => boolean;

/** Verbs that the library knows by another name. */
const aliases: Readonly<Record<string, string>> = {
  "calls.reveal": "calls.get",
  "events.tail": "events.live",
  "records.list": "records.query",
  "records.show": "records.entry",
  "records.count": "records.query",
  "records.aggregate": "records.query",
  "records.search": "records.query",
  "commits.list": "records.commits",
  "commits.show": "records.commit",
  "runs.summary": "telemetry.summaries",
  "runs.overview": "telemetry.overview",
  "runs.slow": "telemetry.slow",
  "book.errors": "telemetry.errors",
  "book.logs": "telemetry.logs",
  "book.recover": "jobs.recover",
};

function libraryCall(key: string, noun: NounName, has: Library): string | undefined {
  const [, name = ""] = key.split(".");
  const own = name === "show" ? [noun, "get"] : nounOf(noun).plain === true ? [name] : [noun, name];
  const path = aliases[key]?.split(".") ?? own;
  return has(path) ? `book.${path.join(".")}(…)` : undefined;
}

export async function describeReference(library: Library): Promise<string> {
  const sections = await Promise.all(nounNames.map((noun) => nounSection(noun, library)));
  const index = nounNames.map((noun) => `- [${kebab(noun)}](#${kebab(noun)}): ${nounOf(noun).about}`);
  return `# Every verb

A verb is one operation, and every way in has it: the command line, HTTP, the typed client, MCP and most of the library. This page is made from
the table of verbs (\`npm run openapi\`). [cli.md](cli.md), [http.md](http.md) and [client.md](client.md) say how each way in works; the answers
are described in [openapi.json](openapi.json), under the name of the verb.

The role is what a token needs: **read** < **operate** < **admin**, and **worker** for programs that run jobs. *Of the book* asks for a token of the
whole book. *Dry run* says what it would do unless \`apply\` is given.

${index.join("\n")}

${sections.join("\n")}`;
}

async function nounSection(noun: NounName, library: Library): Promise<string> {
  const { about, more } = nounOf(noun);
  const verbs = (await verbsOf(noun)).map(([key, verb]) => verbSection(key, verb, library));
  return `## ${kebab(noun)}

${[sentence(about), more ?? ""].filter((part) => part !== "").join(" ")}

${verbs.join("\n")}`;
}

function verbSection(key: string, verb: Verb, library: Library): string {
  const [noun = ""] = key.split(".");
  const route = readRoute(verb);
  const called = libraryCall(key, noun as NounName, library);
  const marks = [
    `role ${roleFor(verb)}`,
    verb.of === "book" ? "of the book" : "",
    verb.destroys === undefined ? "" : verb.destroys === true ? "dry run" : `dry run unless \`${verb.destroys}\``,
    verb.background !== undefined ? "an operation, where it may take minutes" : "",
    verb.stream === true ? "a stream" : verb.lines === true ? "lines" : verb.text === true ? "a text" : "",
    route === undefined ? "the command line alone" : "",
  ].filter((mark) => mark !== "");
  const ways = [
    ["command line", `daybook ${verb.words}`],
    ["HTTP", route === undefined ? undefined : `${route.method} ${apiPrefix}${route.path}`],
    ["client", route === undefined ? undefined : clientCall(key, verb)],
    ["library", called],
  ].flatMap(([way, text]) => (text === undefined ? [] : [`| ${way} | \`${text}\` |`]));
  const fields = fieldsOf(verb).map(([field, said]) => fieldRow(verb, field, said));
  const table = ["| field | | HTTP | |", "| --- | --- | --- | --- |", ...fields].join("\n");
  return `### ${nameOf(verb)}

${[sentence(verb.about), verb.more ?? ""].filter((part) => part !== "").join(" ")}

*${marks.join(" · ")}*

| | |
| --- | --- |
${ways.join("\n")}
${fields.length === 0 ? "" : `\n${table}\n`}
${verb.examples.map((each) => `    $ daybook ${each}`).join("\n")}
`;
}

function fieldRow(verb: Verb, name: string, field: Field): string {
  const route = readRoute(verb);
  const isPlace = placesOf(verb).some((place) => place.name === name);
  const shell = isPlace ? `<${name}>` : optionOf(name, field);
  const where = route === undefined ? "" : placeOf(name, route);
  const about = `${field.about}${wordsOf(field)}${field.maybe ? "" : " (needed)"}`;
  return `| \`${name}\` | \`${shell}${field.metavar === "" || isPlace ? "" : ` <${escaped(field.metavar)}>`}\` | ${where} | ${escaped(about)} |`;
}

/** The words that a field takes, unless they stand in its metavar. */
function wordsOf({ schema, metavar }: Field): string {
  const items = (schema["items"] ?? schema) as { readonly enum?: readonly string[] };
  return items.enum === undefined || metavar === items.enum.join("|") ? "" : `: ${items.enum.join(", ")}`;
}

function placeOf(name: string, { inPath, inQuery }: { inPath: readonly string[]; inQuery: readonly string[] }): string {
  return inPath.includes(name) ? "path" : inQuery.includes(name) ? "query" : "body";
}

function clientCall(key: string, verb: Verb): string {
  const [noun = "", name = ""] = key.split(".");
  const places = placesOf(verb).flatMap((place) => (place.needed ? [place.name] : []));
  const others = fieldsOf(verb).flatMap(([field]) => (places.includes(field) ? [] : [field]));
  const rest =
    others.length === 0 ? [] : [`{ ${others.length > 4 ? `${others.slice(0, 3).join(", ")}, …` : others.join(", ")} }`];
  return `book.${nounOf(noun as NounName).plain === true ? "" : `${noun}.`}${name}(${[...places, ...rest].join(", ")})`;
}

/** A bar would end the cell. */
function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.:]$/.test(text) ? "" : "."}`;
}
