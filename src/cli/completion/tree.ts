// What can be typed, as completion knows it: every command with its words and options, from the program itself, and the words that a
// value may be, from the table of verbs.
import type { Command, Option } from "commander";
import { everyVerb, nounNames, nounOf } from "../../verbs/table.ts";
import { fieldsOf, kebab, nameOf, placesOf, type Verb } from "../../verbs/verb.ts";
import { optionOf } from "../commands.ts";

/** One place where something is typed: `jobs`, `jobs list`, or the program itself, whose path is empty. */
export type Place = {
  readonly path: string;
  /** What may come next: commands, or the words that the first argument may be. */
  readonly words: readonly Said[];
  readonly options: readonly Typed[];
};

export type Said = { readonly name: string; readonly about: string };

export type Typed = Said & {
  /** What its value may be; null: it takes none. */
  readonly value: readonly string[] | "files" | "anything" | null;
  /** Several words may stand in it, with commas between them. */
  readonly several: boolean;
};

export async function placesOfProgram(program: Command): Promise<Place[]> {
  const words = wordsOfFields((await everyVerb()).map(([, verb]) => verb));
  const globals = program.options.map((option) => typed(option, "", words));
  const all = withSubcommands(program).map((command): Place => {
    const path = pathOf(command);
    const own = command.parent === null ? [] : command.options.map((option) => typed(option, path, words));
    return { path, words: next(command, path, words), options: [...own, ...globals, help] };
  });
  return all.map((place) => ({ ...place, options: [...bareOptions(place.path, all), ...place.options] }));
}

const help: Typed = { name: "--help", about: "print this help", value: null, several: false };

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

function pathOf(command: Command): string {
  return command.parent === null
    ? ""
    : [pathOf(command.parent), command.name()].filter((each) => each !== "").join(" ");
}

/** The options of the verb that a noun alone stands for. */
function bareOptions(path: string, all: readonly Place[]): readonly Typed[] {
  const noun = nounNames.find((name) => kebab(name) === path);
  const bare = noun === undefined ? undefined : nounOf(noun).bare;
  const own = all.find((each) => bare !== undefined && each.path === `${path} ${bare}`);
  return own?.options.filter(({ name }) => !all[0]?.options.some((each) => each.name === name)) ?? [];
}

/** `jobs list --status` and its words; `schedules create <gap>` by the place of an argument. */
type Words = ReadonlyMap<string, { readonly words: readonly string[]; readonly several: boolean }>;

function wordsOfFields(verbs: readonly Verb[]): Words {
  return new Map(
    verbs.flatMap((verb) =>
      fieldsOf(verb).flatMap(([name, field]) => {
        const several = field.kind === "list";
        const { enum: words } = (several ? field.schema["items"] : field.schema) as { enum?: string[] };
        if (words === undefined) return [];
        const [first] = placesOf(verb);
        const typedAs = first?.name === name ? "" : optionOf(name, field);
        return [[`${nameOf(verb)} ${typedAs}`.trim(), { words, several }] as const];
      }),
    ),
  );
}

const filed: ReadonlySet<string> = new Set(["--book", "--token", "--from", "--config", "--files"]);

/** The options whose value is a file, wherever they stand. */
export function fileOptions(places: readonly Place[]): string[] {
  return [
    ...new Set(places.flatMap(({ options }) => options.flatMap(({ name, value }) => (value === "files" ? name : [])))),
  ];
}

function typed(option: Option, path: string, words: Words): Typed {
  const name = option.long ?? option.flags;
  const about = option.description;
  if (!option.required && !option.optional) return { name, about, value: null, several: false };
  const known = words.get(`${path} ${name}`.trim());
  const value = option.argChoices ?? known?.words ?? (filed.has(name) ? "files" : "anything");
  return { name, about, value, several: known?.several ?? false };
}

function next(command: Command, path: string, words: Words): Said[] {
  if (path === "help") return [];
  const [first] = command.registeredArguments;
  const choices = first?.argChoices ?? words.get(path)?.words ?? [];
  return [
    ...command.commands.map((each) => ({ name: each.name(), about: each.description() })),
    ...choices.map((name) => ({ name, about: "" })),
  ];
}
