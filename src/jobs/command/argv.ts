// The arguments of a program, with places for params. A value fills its place inside one argument and never makes
// another: there is no shell, and nothing is split. What a value could still do is be taken for an option, so that is
// refused where it could happen.
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { nearest } from "../../core/suggest.ts";
import { operandsFrom } from "./started-program.ts";

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
