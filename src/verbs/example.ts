// The examples of a verb are commands. Other ways in show the same examples as the input that they stand for.
import { fieldsOf, kebab, nameOf, placesOf, type Verb } from "./verb.ts";

/** The input that an example stands for. Null when it needs what only a command line has: a file, or an option of the program. */
export function exampleInput(of: Verb, example: string): Record<string, unknown> | null {
  const words = wordsOf(example).slice(nameOf(of).split(" ").length);
  const places: string[] = [];
  const given = new Map<string, string[] | boolean>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (!word.startsWith("--")) {
      places.push(word);
      continue;
    }
    const [name, field] = fieldsOf(of).find(([each, { schema }]) => word === optionOf(each, schema)) ?? [];
    const [choice] = fieldsOf(of).find(([each, { kind }]) => kind === "choice" && word === `--no-${kebab(each)}`) ?? [];
    if (choice !== undefined) given.set(choice, false);
    else if (name === undefined || field === undefined) return null;
    else if (field.kind === "flag" || field.kind === "choice") given.set(name, true);
    else given.set(name, [...[given.get(name) ?? []].flat().map(String), words[(at += 1)] ?? ""]);
  }
  for (const { name, several } of placesOf(of)) {
    const taken = several ? places.splice(0) : places.splice(0, 1);
    if (taken.length > 0) given.set(name, taken);
  }
  return readGiven(of, given);
}

function readGiven(of: Verb, given: ReadonlyMap<string, readonly string[] | boolean>): Record<string, unknown> | null {
  const input: Record<string, unknown> = {};
  for (const [name, field] of fieldsOf(of)) {
    const texts = given.get(name);
    if (texts === undefined) continue;
    if (typeof texts === "boolean") input[name] = texts;
    else if (field.kind === "json" && texts.some((text) => /^@|^-$/.test(text))) return null;
    else if (field.kind === "list" || field.fromTexts !== undefined) {
      input[name] = field.fromTexts?.(texts, name) ?? texts.flatMap((text) => field.fromText(text, name));
    } else input[name] = field.fromText(texts.at(-1) ?? "", name);
  }
  return input;
}

/** The words of a command as a shell would pass them: quotes hold a word together. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? "",
  );
}

function optionOf(name: string, schema: { readonly [word: string]: unknown }): string {
  const one = schema["x-one"];
  return `--${kebab(typeof one === "string" ? one : name)}`;
}
