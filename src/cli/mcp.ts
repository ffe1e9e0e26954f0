// daybook mcp: the book as tools of an assistant, which starts this process and speaks with it on standard input and output.
import { once } from "node:events";
import { Writable } from "node:stream";
import { Option, type Command } from "commander";
import { systemClock } from "../core/clock.ts";
import { describeError, invalid } from "../core/error.ts";
import { plainLine } from "../verbs/plain.ts";
import { listenForSignals, type Stop } from "./stop.ts";
import { isOnServer } from "./target.ts";

const example = `
An assistant starts it by itself; docs/mcp.md shows what to write into its configuration. Tools only
read unless --allow says more: "operate" makes and steers work, "admin" looks after the book. With
--tenant it sees that tenant alone; without, it may ask about the whole book.

With --server the tools run there, as far as the token allows: for a client that speaks with processes
alone. Others use the server's own address, /mcp.

Standard output belongs to the protocol: what a file of yours prints goes to standard error. It ends
when its input does.

Example:
  $ daybook mcp --book shop.db
  $ daybook mcp --book shop.db --tenant acme --allow operate
  $ daybook mcp --server https://daybook.example --token @token`;

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
  const { allow, from, config } = options;
  const isServer = isOnServer(command, { words: "mcp" });
  const [{ mcpServer }, { StdioServerTransport }, { bookRunner, serverRunner }] = await Promise.all([
    import("../server/mcp.ts"),
    import("@modelcontextprotocol/sdk/server/stdio.js"),
    import("./mcp-runner.ts"),
  ]);
  try {
    const runner = await (isServer
      ? serverRunner(command, stop.signal)
      : bookRunner(command, { sources: { module: from, config }, reads: allow === "read" }));
    try {
      const server = await mcpServer({
        allow,
        caller: runner.caller,
        run: runner.run,
        onDefect: (error) => process.stderr.write(`${describeError(error).trace ?? describeError(error).message}\n`),
      });
      const over = Promise.withResolvers<void>();
      // One that is too large ends the protocol; any other is left out, and its sender waits for an answer.
      let refused = "";
      server.onerror = ({ message }) => void process.stderr.write(`${(refused = plainLine(`refused: ${message}`))}\n`);
      server.onclose = () => over.reject(invalid(`the protocol has ended: ${refused}`));
      // An assistant that is gone reads no answers.
      stdout.once("error", () => over.resolve());
      await server.connect(new StdioServerTransport(process.stdin, stdout));
      await Promise.race([once(process.stdin, "close"), once(process.stdin, "end"), over.promise, stop.asked]);
      over.resolve();
      await server.close();
    } finally {
      await runner.close();
    }
  } finally {
    // What a file of the user's left open, a timer or a connection, does not keep the process.
    systemClock.after(500, () => process.exit());
  }
}
