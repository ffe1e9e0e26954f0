// Where a command does its work: on a book that this process opens, or on a server.
import type { Command } from "commander";
import { DaybookError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { nameOf, type Verb } from "../verbs/verb.ts";

type Globals = {
  readonly book?: string;
  readonly server?: string;
  readonly token?: string;
  readonly tenant: string;
};

/** How an option was given; undefined: not at all. */
type Source = "cli" | "env" | undefined;

function sourceOf(command: Command, option: keyof Globals | "schema"): Source {
  const value: unknown = command.optsWithGlobals<Partial<Globals>>()[option as keyof Globals];
  if (value === undefined || value === "") return undefined;
  const source = command.getOptionValueSourceWithGlobals(option);
  return source === "cli" ? "cli" : source === "env" ? "env" : undefined;
}

/** An option wins over the environment; of two that are equally near, neither is guessed. */
export function isOnServer(command: Command, verb: Pick<Verb, "local" | "words">): boolean {
  const [book, server] = [sourceOf(command, "book"), sourceOf(command, "server")];
  if (book === "cli" && server === "cli") throw invalid("--book and --server are both given: give one of them");
  if (verb.local === true) return false;
  if (book === "env" && server === "env") {
    throw invalid("DAYBOOK_BOOK and DAYBOOK_SERVER are both set: say with --book or --server which is meant");
  }
  const isServer = server !== undefined && (book === undefined || server === "cli");
  if (!isServer && sourceOf(command, "token") === "cli")
    throw invalid("--token is for a server: give --server as well");
  return isServer;
}

/** The address of the book. What works on files of this machine, or runs here, has no use for a server. */
export function bookOf(command: Command): string {
  const { book } = command.optsWithGlobals<Globals>();
  const server = sourceOf(command, "server");
  if (server === "cli" || (server === "env" && sourceOf(command, "book") === undefined)) {
    const why = "works on this machine and has no use for a server";
    throw invalid(`"${commandName(command)}" ${why}: it needs a book, named with --book <url> or as DAYBOOK_BOOK`);
  }
  if (book === undefined || book === "") {
    throw invalid(
      "no book given: name it with --book <url>, or in the environment as DAYBOOK_BOOK; a server is named with --server <url>",
    );
  }
  return book;
}

function commandName(command: Command): string {
  const above = command.parent;
  return above === null || above.parent === null ? command.name() : `${commandName(above)} ${command.name()}`;
}

export type Server = {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string;
  /** Null: as the token says. */
  readonly tenant: string | null;
};

/** `read` gives the text behind `@file`. */
export async function serverOf(
  command: Command,
  verb: Pick<Verb, "words">,
  read: (text: string, what: string) => Promise<string>,
): Promise<Server> {
  const { server = "", token = "", tenant } = command.optsWithGlobals<Globals>();
  refuseLocal(command, verb);
  const url = serverUrl(server);
  if (token === "") {
    const advice = 'give --token @file or set DAYBOOK_TOKEN ("daybook tokens create" makes one)';
    throw new DaybookError("unauthorized", `no token for ${url}: ${advice}`);
  }
  const secret = (token.startsWith("@") ? await read(token, "--token") : token).trim();
  // It is not shown, also where it is no token: it may be one with a slip of the hand.
  if (!/^[\w.~+/=-]{1,500}$/.test(secret)) throw invalid("--token is no token: give one as it was printed, or @file");
  return { url, token: secret, tenant: sourceOf(command, "tenant") === undefined ? null : tenant };
}

/** What names files of this machine says nothing to a server, so it is not passed over in silence. */
function refuseLocal(command: Command, verb: Pick<Verb, "words">): void {
  if (sourceOf(command, "schema") === "cli") throw invalid("--schema is for a book: a server has its own");
  for (const option of ["from", "config", "files"] as const) {
    if (command.getOptionValueSource(option) !== "cli") continue;
    throw invalid(`--${option} is for a book: a server runs "${nameOf(verb)}" with what it has itself`);
  }
}

export function serverUrl(given: string): string {
  const url = URL.parse(given);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalid(`--server is ${quote(given)}: give an address such as "https://daybook.example:7420"`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw invalid("--server has more than an address and a path: give the token with --token or as DAYBOOK_TOKEN");
  }
  return url.href.replace(/\/+$/, "");
}
