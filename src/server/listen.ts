// The app behind a port of this machine: plain HTTP on loopback, HTTPS by files, and an end that lets what is under way finish.
import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { isIP } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { App } from "./app.ts";

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
  const answer = getRequestListener((request, { incoming }) =>
    app.fetch(request, { address: incoming.socket.remoteAddress ?? "" }),
  );
  const handle = (...asked: Parameters<typeof answer>): void => void answer(...asked);
  const server: Server =
    tls === undefined
      ? createHttpServer(settings, handle)
      : createHttpsServer({ ...settings, cert: pem(tls.cert, "cert"), key: pem(tls.key, "key") }, handle);
  server.maxConnections = connectionsMax;
  server.setTimeout(silentMs);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(refusedPort(cause, host, port)));
    server.listen({ host, port }, resolve);
  });
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  const shown = isIP(host) === 6 ? `[${host}]` : host;
  return {
    url: `${tls === undefined ? "http" : "https"}://${shown}:${taken}`,
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
