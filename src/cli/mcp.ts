// daybook mcp: the book as tools of an assistant, which starts this process and speaks with it on standard input and output.
import { once } from "node:events";
import { Writable } from "node:stream";
import { Option, type Command } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { describeError } from "../core/error.ts";
import { listenForSignals, type Stop } from "./stop.ts";
import { changing, looking, openBook, type Access } from "./with-book.ts";

const example = `
An assistant starts it by itself; docs/mcp.md shows what to write into its configuration. Tools only
read unless --allow says more: "operate" makes and steers work, "admin" looks after the book. With
--tenant it sees that tenant alone; without, it may ask about the whole book.

Standard output belongs to the protocol: what a file of yours prints goes to standard error. It ends
when its input does.

Example:
  $ daybook mcp --book shop.db
  $ daybook mcp --book shop.db --tenant acme --allow operate`;

type Options = { readonly allow: "read" | "operate" | "admin"; readonly from?: string; readonly config?: string };

export function mcp(program: Command): void {
  program
    .command("mcp")
    .description("serve the book to an assistant as tools, by the Model Context Protocol")
    .addOption(
      new Option("--allow <role>", "what tools may do at most: read, operate, admin")
        .choices(["read", "operate", "admin"])
        .default("read"),
    )
    .option("--from <module>", "the file that exports definitions of jobs and records")
    .option("--config <file>", "the config that declares them (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async (options: Options, command: Command) => {
      const stdout = takeStdout();
      const stop = listenForSignals();
      try {
        await serve(options, command, stop, stdout);
      } finally {
        stop.release();
      }
    });
}

/** From here on whatever else is printed goes to standard error. */
function takeStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => void write(chunk, (error) => done(error)),
  });
}

async function serve(options: Options, command: Command, stop: Stop, stdout: Writable): Promise<void> {
  const [{ mcpServer }, { StdioServerTransport }, { accessOf }, { needed, usableDefinitions }] = await Promise.all([
    import("../server/mcp.ts"),
    import("@modelcontextprotocol/sdk/server/stdio.js"),
    import("./run-verb.ts"),
    import("./load-definitions.ts"),
  ]);
  const definitions = await usableDefinitions({ module: options.from, config: options.config });
  const books = keepBooks(command);
  try {
    // A book that cannot be opened is said at once, not at the first question. Who may write does so first: a file that was moved
    // must be settled in its new place while nobody has it open.
    await books.open(options.allow === "read" ? looking : changing);
    const isGiven = command.getOptionValueSourceWithGlobals("tenant") !== "default";
    const server = await mcpServer({
      allow: options.allow,
      caller: { role: "admin", tenant: isGiven ? command.optsWithGlobals<{ tenant: string }>().tenant : null },
      onDefect: (error) => process.stderr.write(`${describeError(error).trace ?? describeError(error).message}\n`),
      // On a server it is the server that runs the verb: whoever brings --server to this command asks it here.
      async run({ verb, input, signal, caller: { tenant } }) {
        const use = needed(verb, input, definitions);
        const book = await books.open(accessOf(command, { verb, input, use }));
        return verb.run(book, input, { signal, tenant });
      },
    });
    await server.connect(new StdioServerTransport(process.stdin, stdout));
    await Promise.race([once(process.stdin, "close"), once(process.stdin, "end"), stop.asked]);
    await server.close();
  } finally {
    await books.close();
    // What a file of the user's left open, a timer or a connection, does not keep the process.
    systemClock.after(500, () => process.exit());
  }
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
