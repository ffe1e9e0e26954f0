// The whole command line: its global options and the list of its commands. A noun of the table of verbs brings its commands when
// the arguments name it, and what a command needs to do its work is imported when it runs, so that help and slips of the hand
// are answered at once.
import { Command, Option } from "commander";
import { invalid } from "../core/error.ts";
import { packageVersion } from "../core/version.ts";
import { nounNames, nounOf, type NounName } from "../verbs/table.ts";
import { kebab } from "../verbs/verb.ts";
import { addNoun } from "./commands.ts";

/** Commands whose work is more than an operation on data, so they are made by hand. */
const handMade = {
  run: async () => (await import("./run.ts")).run,
  serve: async () => (await import("./serve.ts")).serve,
  migrate: async () => (await import("./migrate.ts")).migrate,
  mcp: async () => (await import("./mcp.ts")).mcp,
  init: async () => (await import("./init.ts")).init,
  config: async () => (await import("./config.ts")).config,
  completion: async () => (await import("./completion.ts")).completion,
};

type HandMade = keyof typeof handMade;

const commands: readonly (NounName | HandMade)[] = [
  ...(["run", "serve", "mcp", "migrate"] as const),
  ...nounNames,
  ...(["init", "config", "completion"] as const),
];

const about = "Looks after a book: the SQLite file, or the schema on PostgreSQL, that a program keeps its work in.";

const afterwards = `
Name the book once and for all:
  $ export DAYBOOK_BOOK=shop.db
  $ daybook migrate && daybook info
Or a server that has one:
  $ export DAYBOOK_SERVER=https://daybook.example DAYBOOK_TOKEN=@token

Exit codes: 0 done, 2 wrong usage, others by the kind of error (docs/errors.md).`;

/** Reads the arguments, does what they say, and throws whatever goes wrong. */
export async function runProgram(args: readonly string[], { json }: { json: boolean }): Promise<void> {
  const word = commandOf(args);
  const isAlone = (each: NounName | HandMade): boolean => isHandMade(each) || nounOf(each).plain === true;
  const isNoun = commands.some((each) => !isAlone(each) && kebab(each) === word);
  // Commands without a noun are there whenever no noun is named, also for the list of all commands.
  const isWanted = (each: NounName | HandMade): boolean => (isAlone(each) ? !isNoun : kebab(each) === word);
  const program = await createProgram({ json, isNamed: isWanted });
  await program.parseAsync(args, { from: "user" });
}

/** The first word that names a command: not "help", an option of the program or the value of one. */
function commandOf(args: readonly string[]): string | undefined {
  const isValue = (index: number): boolean =>
    ["--book", "--server", "--token", "--tenant", "--schema"].includes(args[index - 1] ?? "");
  return args.find((each, index) => !each.startsWith("-") && each !== "help" && !isValue(index));
}

function isHandMade(name: string): name is HandMade {
  return Object.hasOwn(handMade, name);
}

type Making = {
  readonly json: boolean;
  /** Whether a noun is to be there with its verbs, or a command that has none: those that nobody names are not loaded. */
  readonly isNamed: (name: NounName | HandMade) => boolean;
};

export async function createProgram({ json, isNamed }: Making): Promise<Command> {
  const program = new Command("daybook")
    .description(about)
    .version(packageVersion(), "-V, --version", "print the version of daybook")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .addOption(new Option("--book <url>", 'the book: a file, or "postgres://…"').env("DAYBOOK_BOOK"))
    .addOption(new Option("--server <url>", "in place of a book: a server that has one").env("DAYBOOK_SERVER"))
    .addOption(new Option("--token <text>", 'the token for the server, or "@file"').env("DAYBOOK_TOKEN"))
    .addOption(new Option("--tenant <id>", "the tenant to see the book as").env("DAYBOOK_TENANT").default("default"))
    .option("--schema <name>", 'PostgreSQL: the schema that holds the book (default: "daybook")')
    .option("--json", "print one JSON document, with times in ISO 8601 UTC")
    .option("--utc", "show times in UTC, not in the zone of this machine")
    .addHelpText("after", afterwards)
    .configureHelp({ showGlobalOptions: true })
    // Failures are thrown and reported in one place (failure.ts), so commander itself prints none and never exits.
    .configureOutput({ outputError: () => undefined, ...(json ? { writeErr: () => undefined } : {}) })
    .exitOverride();
  for (const each of commands) {
    if (!isHandMade(each)) await addNoun(program, each, { loaded: isNamed(each) });
    else if (isNamed(each)) (await handMade[each]())(program);
  }
  addHelp(program);
  nameHelp(program, "daybook");
  return program;
}

// Commander's own goes one word deep: "help jobs list" would be the help of all jobs.
function addHelp(program: Command): void {
  const find = (within: Command, [word, ...rest]: readonly string[]): Command => {
    if (word === undefined) return within;
    const found = within.commands.find((each) => each.name() === word);
    if (found === undefined) throw invalid(`there is no command ${JSON.stringify(word)}: see "daybook --help"`);
    return find(found, rest);
  };
  program
    .command("help [command...]")
    .description("print the help of a command")
    .action((path: readonly string[]) => find(program, path).outputHelp());
}

/** Whoever uses a command wrongly is sent to the help of that command, not to the list of all. */
function nameHelp(command: Command, path: string): void {
  command.exitOverride((error) => {
    throw Object.assign(error, { help: `${path} --help` });
  });
  for (const each of command.commands) nameHelp(each, `${path} ${each.name()}`);
}
