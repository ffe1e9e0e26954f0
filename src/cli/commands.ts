// The commands that the table of verbs makes: their words, options and help, and what happens when one is run.
import { Option, type Command } from "commander";
import type { Field } from "../verbs/field.ts";
import { nounOf, verbsOf, type NounName } from "../verbs/table.ts";
import { fieldsOf, kebab, nameOf, placesOf, type Verb } from "../verbs/verb.ts";

/** A noun of the table, with its verbs if the arguments name it: help and slips of the hand are to be answered at once. */
export async function addNoun(program: Command, name: NounName, { loaded }: { loaded: boolean }): Promise<void> {
  const noun = nounOf(name);
  const group = noun.plain === true ? program : program.command(kebab(name)).description(noun.about).helpCommand(false);
  if (!loaded) return;
  const verbs = await verbsOf(name);
  if (noun.plain !== true) group.addHelpText("after", afterwards(noun.more, firstExamples(verbs)));
  for (const [key, verb] of verbs) {
    const isDefault = key === `${name}.${noun.bare}`;
    addVerb(group, verb, { isDefault }, async (command) => {
      const { runVerb } = await import("./run-verb.ts");
      await runVerb(command, key, verb);
    });
  }
}

function firstExamples(verbs: readonly (readonly [key: string, verb: Verb])[]): string[] {
  return verbs.slice(0, 2).flatMap(([, { examples }]) => examples.slice(0, 1));
}

export function addVerb(
  group: Command,
  verb: Verb,
  options: { readonly isDefault: boolean },
  run: (command: Command) => Promise<void>,
): void {
  const places = placesOf(verb);
  const command = group.command(nameOf(verb).split(" ").at(-1) ?? "", options).description(verb.about);
  for (const { name, needed, several } of places) {
    const words = `${name}${several ? "..." : ""}`;
    command.argument(needed ? `<${words}>` : `[${words}]`, verb.input[name]?.about ?? "");
  }
  for (const [name, field] of fieldsOf(verb)) {
    if (places.every((place) => place.name !== name))
      for (const each of optionsOf(name, field)) command.addOption(each);
  }
  if (verb.definitions !== undefined) addDefinitions(command);
  if (verb.files === true) {
    command.option("--files <folder>", 'the book\'s folder for files, if its programs open it with "files"');
  }
  if (verb.background !== undefined) {
    command.option("--no-wait", "on a server: do not wait for it to end, and say which operation it is");
  }
  command.addHelpText("after", afterwards(verb.more, verb.examples)).action(() => run(command));
}

function addDefinitions(command: Command): void {
  command
    .option("--from <module>", "the file that exports the definition, TypeScript or JavaScript")
    .option("--config <file>", "the config that declares it (default: daybook.config.ts, if it is here)");
}

function optionsOf(name: string, field: Field): Option[] {
  const long = optionOf(name, field);
  if (field.kind === "flag") return [new Option(long, field.about)];
  if (field.kind === "choice") return [new Option(long, field.about), new Option(`--no-${long.slice(2)}`, field.no)];
  const option = new Option(`${long} <${field.metavar}>`, `${field.about}${furtherOf(field)}`);
  if (field.kind === "list" || field.fromTexts !== undefined)
    option.argParser<readonly string[] | undefined>((each, before) => [...(before ?? []), each]);
  return [option.makeOptionMandatory(!field.maybe)];
}

/** The option of a field: `--key-scope`, and `--tag` for each of the `tags`. */
export function optionOf(name: string, { schema }: Pick<Field, "schema">): string {
  const one = schema["x-one"];
  return `--${kebab(typeof one === "string" ? one : name)}`;
}

function furtherOf({ kind, schema, metavar }: Field): string {
  const { enum: words } = (kind === "list" ? schema["items"] : schema) as { readonly enum?: readonly string[] };
  if (kind === "json") return ', "@file" to read it from a file, "-" from standard input';
  if (words === undefined || metavar === words.join("|")) return "";
  return kind === "list" ? `, separated by commas: ${words.join(", ")}` : `: ${words.join(", ")}`;
}

function afterwards(more = "", examples: readonly string[]): string {
  const lines = examples.map((each) => `  $ daybook ${each}`);
  return `${more === "" ? "" : `\n${more}\n`}\n${lines.length === 1 ? "Example" : "Examples"}:\n${lines.join("\n")}`;
}
