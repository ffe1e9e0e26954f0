// What daybook serve does: it opens the books, serves them, works on them, and ends all of it in the order in which it began.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { durationMs } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import type { Logger } from "../open/log.ts";
import type { OpenOptions } from "../open/open.ts";
import { createApp } from "../server/app.ts";
import { loopbackHosts } from "../server/guard.ts";
import { hostOf, isLoopback, listen } from "../server/listen.ts";
import { loadDefinitions, loadConfig } from "./load-definitions.ts";
import type { ServeOptions } from "./serve.ts";
import type { Stop } from "./stop.ts";
import { openUnlessStopped, type Access } from "./with-book.ts";

export async function serveBooks(
  module: string | undefined,
  options: ServeOptions,
  command: Command,
  stop: Stop,
): Promise<void> {
  const graceMs = options.grace === undefined ? undefined : durationMs(options.grace, "--grace");
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
    throw invalid("TLS needs a certificate and its key: give both --tls-cert and --tls-key");
  }
  const configured = await loadConfig(options.config);
  const isRunning = module !== undefined || (configured !== undefined && configured.definitions.length > 0);
  const loaded = isRunning
    ? await loadDefinitions({ module, config: options.config })
    : { use: [], calls: configured?.calls, zone: configured?.zone, retention: configured?.retention };
  const { calls, zone, retention } = loaded;
  const said = Object.fromEntries(
    Object.entries({ calls, zone, retention }).filter(([, value]) => value !== undefined),
  );
  const worker = {
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(graceMs === undefined ? {} : { grace: graceMs }),
  };
  const access: Access = { attach: true, migrate: true, use: loaded.use, worker, ...said };
  const { books: named, hosts = [], origins = [] } = configured?.server ?? {};
  const books = await openBooks(named, command, access, stop);
  if (books === undefined) return;
  const log = options.accessLog === true ? await createLog() : undefined;
  try {
    const app = createApp(books, {
      hosts: [...loopbackHosts, hostOf(options.host), ...hosts, ...(options.hostName ?? [])],
      origins: [...origins, ...(options.origin ?? [])],
      ...(options.prefix === undefined ? {} : { prefix: options.prefix }),
      ...(options.readOnly === true ? { readOnly: true } : {}),
      mcp: options.mcp,
      ...(log === undefined ? {} : { log }),
    });
    const listening = await listen(app, {
      host: options.host,
      port: options.port,
      ...(options.tlsCert === undefined || options.tlsKey === undefined
        ? {}
        : { tls: { cert: options.tlsCert, key: options.tlsKey } }),
      insecure: options.insecure === true,
    });
    try {
      if (options.work) await app.start();
      const home = `${listening.url}${options.prefix ?? ""}`;
      await tell(command, {
        books,
        home,
        // What is printed may stand in a log for long, so only who is on this machine anyway is let in by it.
        link: options.readOnly === true || !isLoopback(options.host) ? undefined : `${home}/login/${await app.link()}`,
      });
      await stop.asked;
    } finally {
      await listening.close(graceMs);
    }
  } finally {
    for (const book of Object.values(books)) await book.close();
  }
  // What the user's file left open (a timer, a connection) does not keep a server that was told to stop.
  systemClock.after(500, () => process.exit());
}

type Books = { readonly [name: string]: Book };

async function openBooks(
  named: { readonly [name: string]: string } | undefined,
  command: Command,
  access: Access,
  stop: Stop,
): Promise<Books | undefined> {
  const { book } = command.optsWithGlobals<{ book?: string }>();
  if (named === undefined || (book !== undefined && book !== "")) {
    const opened = await openUnlessStopped(stop, command, access);
    return opened === undefined ? undefined : { default: opened };
  }
  const { open } = await import("../open/open.ts");
  const books: Record<string, Book> = {};
  try {
    for (const [name, url] of Object.entries(named)) books[name] = await open(url, access satisfies OpenOptions);
    return books;
  } catch (error) {
    for (const opened of Object.values(books)) await opened.close();
    throw error;
  }
}

type Told = { readonly books: Books; readonly home: string; readonly link: string | undefined };

async function tell(command: Command, { books, home, link }: Told): Promise<void> {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  const served = Object.entries(books).map(([name, { location }]) => ({ name, location }));
  const lines =
    json === true
      ? [JSON.stringify({ type: "serving", url: home, link: link ?? null, books: served })]
      : [
          `Serving ${served.map(({ location }) => location).join(", ")} at ${home}`,
          ...(link === undefined ? [] : [`Log in once, within 15 minutes: ${link}`]),
          `API: ${home}/api/v1   document: ${home}/api/v1/openapi.json   Ctrl-C ends it.`,
        ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

async function createLog(): Promise<Logger> {
  const { pino, stdTimeFunctions, destination } = await import("pino");
  const log = pino({ base: null, timestamp: stdTimeFunctions.isoTime }, destination({ dest: 2, sync: false }));
  return {
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  };
}
