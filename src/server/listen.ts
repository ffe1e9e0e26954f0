// The app behind a port of this machine: plain HTTP on loopback, HTTPS by files, and an end that lets what is under way finish.
import { readFileSync } from "node:fs";
import { createServer as createHttpServer, STATUS_CODES, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { App } from "./app.ts";
import { headersOfAll } from "./guard.ts";
import { HttpRefusal, problemResponse } from "./problem.ts";

export type ListenOptions = {
  /** Default 127.0.0.1. Anything that is not of this machine wants `tls`, or `insecure`. */
  readonly host?: string;
  /** Default 4600; 0 takes a free one. */
  readonly port?: number;
  /** The files of a certificate and its key, in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** True: serve others without TLS, because a proxy before it has it. */
  readonly insecure?: boolean;
};

export type Listening = {
  /** `http://127.0.0.1:4600` */
  readonly url: string;
  /** Takes no more requests, ends streams, lets what is under way finish for so long, then cuts it off. */
  close(graceMs?: number): Promise<void>;
};

/** A connection is not held by who is slow to say what they want, nor by who has gone. */
const settings = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 5000,
  // The app refuses it, with a problem.
  requireHostHeader: false,
};
const connectionsMax = 10_000;
const silentMs = 60_000;
const graceMsDefault = 8000;

export async function listen(app: App, options: ListenOptions = {}): Promise<Listening> {
  const { host = "127.0.0.1", port = 4600, tls, insecure = false } = options;
  if (!isLoopback(host) && tls === undefined && !insecure) {
    const advice = "give a certificate (--tls-cert, --tls-key), or say --insecure where a proxy before it has one";
    throw new DaybookError(
      "forbidden",
      `${quote(host)} is reached from other machines, and tokens would travel in clear: ${advice}`,
    );
  }
  const answer = getRequestListener(
    (request, { incoming }) => app.fetch(request, { address: incoming.socket.remoteAddress ?? "" }),
    // What has no address that can be read never becomes a request.
    { errorHandler: () => problemResponse(unreadable(400), headersOfAll) },
  );
  const handle = (...asked: Parameters<typeof answer>): void => void answer(...asked);
  const server: Server = tls === undefined ? createHttpServer(settings, handle) : secureServer(tls, handle);
  server.on("checkExpectation", handle);
  server.on("clientError", (error, socket) => void refuseBytes(error, socket));
  server.maxConnections = connectionsMax;
  server.setTimeout(silentMs);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(refusedPort(cause, host, port)));
    server.listen({ host, port }, resolve);
  });
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `${tls === undefined ? "http" : "https"}://${hostOf(host)}:${taken}`,
    async close(graceMs = graceMsDefault) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const late = systemClock.after(graceMs, () => server.closeAllConnections(), { keepAlive: true });
      await Promise.race([app.close(), systemClock.sleep(graceMs)]);
      server.closeIdleConnections();
      await closed;
      late.cancel();
    },
  };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** What Node's parser gives up on, as it would answer by itself, but as a problem like every other. */
async function refuseBytes(error: Error, socket: Duplex): Promise<void> {
  const current: unknown = Reflect.get(socket, "_httpMessage");
  // Behind an answer that has begun, another would be taken for its rest.
  const isAnswering = typeof current === "object" && current !== null && Reflect.get(current, "headersSent") === true;
  if (!socket.writable || isAnswering) return void socket.destroy();
  const status = statusOfParser[String(Reflect.get(error, "code"))] ?? 400;
  const { headers, statusText, body } = await textOf(problemResponse(unreadable(status), headersOfAll));
  const lines = [...headers, ["content-length", Buffer.byteLength(body)], ["connection", "close"]];
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(`HTTP/1.1 ${status} ${statusText}\r\n${head}\r\n${body}`, () => socket.destroy());
}

const statusOfParser: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

const refusals: Readonly<Record<number, string>> = {
  400: "this is no request of HTTP/1.1: a line, a header or the length of the body cannot be read",
  408: `a request must be sent within ${settings.requestTimeout / 1000} s, and its headers within ${settings.headersTimeout / 1000} s`,
  413: "the extensions of a chunk are too long: leave them out",
  431: `the headers have more than ${settings.maxHeaderSize} bytes: send fewer, or shorter ones`,
};

function unreadable(status: number): HttpRefusal {
  return new HttpRefusal(status, "invalid", refusals[status] ?? "");
}

async function textOf(response: Response) {
  return { headers: [...response.headers], statusText: STATUS_CODES[response.status], body: await response.text() };
}

/** The address as it stands in a URL. */
export function hostOf(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function secureServer(tls: { cert: string; key: string }, handle: RequestListener): Server {
  const files = { cert: pem(tls.cert, "cert"), key: pem(tls.key, "key") };
  try {
    return createHttpsServer({ ...settings, ...files }, handle);
  } catch (cause) {
    const why = `${quote(tls.cert)} and ${quote(tls.key)} are no certificate and key in PEM that fit`;
    throw invalid(`${why}: ${cause instanceof Error ? cause.message : quote(cause)}`, { cause });
  }
}

function pem(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(`the TLS ${what} cannot be read from ${quote(path)}`, { cause });
  }
}

function refusedPort(cause: Error, host: string, port: number): Error {
  const code: unknown = Reflect.get(cause, "code");
  if (code === "EADDRINUSE")
    return new DaybookError("conflict", `the port ${port} of ${host} is taken: name another with --port`, { cause });
  if (code === "EACCES")
    return new DaybookError("forbidden", `the port ${port} may not be taken by this user: name one above 1023`, {
      cause,
    });
  return invalid(`${host}:${port} cannot be listened on: ${cause.message}`, { cause });
}
