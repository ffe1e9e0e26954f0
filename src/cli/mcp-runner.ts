// Where the tools of an assistant run: on a book that this process opens, or on a server.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import type { Asked } from "../server/mcp.ts";
import type { McpCaller } from "../server/mcp/tool.ts";
import { needed, usableDefinitions, type Sources } from "./load-definitions.ts";
import { readText } from "./read-input.ts";
import { connect, parseReply } from "./remote/connection.ts";
import { requestOf } from "./remote/request.ts";
import { itemsOf, linesOf } from "./remote/stream.ts";
import { accessOf } from "./run-verb.ts";
import { serverOf } from "./target.ts";
import { changing, looking, openBook, type Access } from "./with-book.ts";

export type Runner = {
  readonly caller: McpCaller;
  run(asked: Asked<McpCaller>): Promise<unknown>;
  close(): Promise<void>;
};

export async function bookRunner(
  command: Command,
  { sources, reads }: { readonly sources: Sources; readonly reads: boolean },
): Promise<Runner> {
  const definitions = await usableDefinitions(sources);
  const books = keepBooks(command);
  const isGiven = command.getOptionValueSourceWithGlobals("tenant") !== "default";
  const tenant = isGiven ? command.optsWithGlobals<{ tenant: string }>().tenant : null;
  // A book that cannot be opened is said at once, not at the first question. Who may write does so first: a file that was moved must
  // be settled in its new place while nobody has it open.
  await books.open(reads ? looking : changing);
  return {
    caller: { role: "admin", tenant },
    async run({ verb, input, signal }) {
      const use = needed(verb, input, definitions);
      const book = await books.open(accessOf(command, { verb, input, use }));
      return verb.run(book, input, { signal, tenant });
    },
    close: books.close,
  };
}

type Books = { open(access: Access): Promise<Book>; close(): Promise<void> };

/** Each verb finds the book opened as it needs it, and what only looks can change nothing. Each way is opened once. */
function keepBooks(command: Command): Books {
  const opened = new Map<string, Promise<Book>>();
  return {
    async open(access) {
      const { use = [], ...how } = access;
      const key = JSON.stringify([how, use.length]);
      const book = opened.get(key) ?? openBook(command, access);
      opened.set(key, book);
      // One that could not be opened is tried again: it may have been busy.
      book.catch(() => opened.delete(key));
      return book;
    },
    async close() {
      for (const book of opened.values()) await book.then((each) => each.close()).catch(() => undefined);
    },
  };
}

/** The server decides what its token may do; it is asked first, so that only such tools are listed. */
export async function serverRunner(command: Command, stop: AbortSignal): Promise<Runner> {
  const server = await serverOf(command, { words: "mcp" }, readText);
  const who = await connect(server, stop).send({ method: "GET", path: "/caller", body: undefined, hasKey: false });
  const { role, tenant } = parseReply(server, who.text) as McpCaller;
  return {
    caller: { role, tenant },
    async run({ verb, input, signal }) {
      const connection = connect(server, AbortSignal.any([signal, stop]));
      const request = requestOf(verb, input);
      if (verb.lines === true) return linesOf(connection, request);
      if (verb.stream === true) return itemsOf(connection, request);
      const { status, text } = await connection.send(request);
      if (status === 204) return undefined;
      return verb.text === true ? text : parseReply(server, text);
    },
    close: async () => undefined,
  };
}
