// daybook serve: a book as a service.
import { Option, type Command } from "commander";
import { whole } from "../verbs/field.ts";
import { listenForSignals } from "./stop.ts";

const more = `
It answers on this machine alone, and prints a link that logs a browser in once. A book that is not there
is made, and one that is not up to date is migrated. The jobs, schedules, listeners and apps of the module
and of the config run here too, calls are sent and schedules fire; --no-work leaves that to others.

Other machines are answered with a certificate, or with --insecure behind a proxy that has one; say by
which names with --host-name. Tokens are made with "daybook tokens create" (docs/access.md).

Several books are named in the config: export default { server: { books: { shop: "shop.db" } } }.
SIGINT or SIGTERM lets what is under way end (within --grace), and ends the program with 0.

Example:
  $ daybook serve --book shop.db jobs.ts
  $ daybook serve --book shop.db --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --host-name shop.example`;

export type ServeOptions = {
  readonly host: string;
  readonly port: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly insecure?: boolean;
  readonly hostName?: readonly string[];
  readonly origin?: readonly string[];
  readonly prefix?: string;
  readonly readOnly?: boolean;
  readonly mcp: "read" | "operate" | "admin";
  readonly work: boolean;
  readonly accessLog?: boolean;
  readonly concurrency?: number;
  readonly config?: string;
  readonly grace?: string;
};

export function serve(program: Command): void {
  program
    .command("serve")
    .description("serve the book over HTTP, and work on it, until it is told to stop")
    .argument("[module]", "the file that exports the definitions to run: TypeScript or JavaScript")
    .option("--config <file>", "the config of the project (default: daybook.config.ts, if it is here)")
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option("--port <n>", "the port to listen on; 0 takes a free one", toPort, 4600)
    .option("--tls-cert <file>", "the certificate, in PEM")
    .option("--tls-key <file>", "its key, in PEM")
    .option("--insecure", "serve other machines without TLS")
    .option("--host-name <name...>", "a name by which it may be asked, besides those of this machine")
    .option("--origin <origin...>", "an origin whose pages may change things")
    .option("--prefix <path>", "the path below which it stands, such as /daybook")
    .option("--read-only", "refuse every change that comes over HTTP")
    .addOption(
      new Option("--mcp <role>", "what assistants may do at most, by /mcp: read, operate, admin")
        .choices(["read", "operate", "admin"])
        .default("read"),
    )
    .option("--no-work", "run nothing here")
    .option("--concurrency <n>", "how many runs at the same time (default: 10)", toConcurrency)
    .option("--access-log", "say each request on standard error, as a line of JSON")
    .option("--grace <duration>", "how long what is under way may go on after a signal: 5s, 1m (default: 8s)")
    .addHelpText("after", more)
    .action(async (module: string | undefined, options: ServeOptions, command: Command) => {
      const stop = listenForSignals();
      try {
        const { serveBooks } = await import("./serve-books.ts");
        await serveBooks(module, options, command, stop);
      } finally {
        stop.release();
      }
    });
}

function toPort(text: string): number {
  const field = whole("the port", 0, 65_535);
  const value = field.fromText(text, "--port");
  field.check(value, "--port");
  return Number(value);
}

function toConcurrency(text: string): number {
  const field = whole("how many runs at the same time", 1, 10_000);
  const value = field.fromText(text, "--concurrency");
  field.check(value, "--concurrency");
  return Number(value);
}
