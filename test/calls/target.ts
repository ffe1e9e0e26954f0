// A real HTTP server on loopback that a test's calls go to, and the options that let them.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { openTest, cleanup, type Backend } from "../support/open-test.ts";
import { manualClock, type Book, type ManualClock, type OpenOptions } from "../../src/index.ts";

export type Received = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type Target = {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Every request that came in whole, in order. */
  readonly received: Received[];
  /** Resolves once so many requests have come in. */
  until(count: number): Promise<void>;
};

export type Answer = (request: Received, response: ServerResponse, incoming: IncomingMessage) => void;

export const ok: Answer = (_request, response) => void response.end("ok");

export function status(code: number, headers: Record<string, string> = {}): Answer {
  return (_request, response) => void response.writeHead(code, headers).end(`answer ${code}`);
}

/** Answers one after the other; the last one for all that follow. */
export function inOrder(...answers: Answer[]): Answer {
  let next = 0;
  return (...args) => (answers[Math.min(next++, answers.length - 1)] ?? ok)(...args);
}

export async function target(
  t: TestContext,
  answer: Answer = ok,
  secure?: { readonly key: string; readonly cert: string },
): Promise<Target> {
  const received: Received[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
      received.push(one);
      for (const each of waiting) if (received.length >= each.count) each.resolve();
      answer(one, response, request);
    });
  };
  const server = secure === undefined ? createServer(handle) : createSecureServer(secure, handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    received,
    port,
    host: `127.0.0.1:${port}`,
    url: `${secure === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    until: (count) =>
      new Promise((resolve) => (received.length >= count ? resolve() : waiting.push({ count, resolve }))),
  };
}

export const testKey = Buffer.alloc(32, 7).toString("base64");

/** A book whose calls may reach this machine, with a clock that the test moves. Making the views takes longer than all the
 *  rest, so only who reads them asks for them. */
export async function openCalls(
  t: TestContext,
  backend: Backend,
  options: OpenOptions & { url?: string } = {},
): Promise<{ book: Book; clock: ManualClock; url: string }> {
  const moved = manualClock({ at: "2026-01-15T12:00:00Z" });
  // Both clocks go on with each step: time in which nobody was there.
  const clock = { ...moved, monotonic: moved.now };
  const calls = { key: testKey, allow: ["127.0.0.0/8"], ...options.calls };
  const { book, url } = await openTest(t, backend, { clock, ...options, calls });
  return { book, clock, url };
}

/** Works until nothing is left to do now. */
export async function workAll(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}
