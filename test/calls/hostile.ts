// Servers that answer as no server should.
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { createGzip, gzipSync } from "node:zlib";
import { cleanup } from "../support/open-test.ts";

/** A server that gets the socket once the head of a request has come in. */
export async function rawServer(
  t: TestContext,
  answer: (socket: Socket) => void,
): Promise<{ url: string; requests(): number; written(): number }> {
  let written = 0;
  const sockets = new Set<Socket>();
  let requests = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      written += socket.bytesWritten;
    });
    socket.once("data", () => {
      requests++;
      answer(socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests: () => requests,
    written: () => written,
  };
}

/** A server that answers the first request of each connection, says nothing of closing it, and closes it when the next one comes, unread. */
export async function onePerConnection(
  t: TestContext,
): Promise<{ url: string; served(): number; connections(): number }> {
  let [served, connections] = [0, 0];
  const { url } = await rawServer(t, (socket) => {
    connections++;
    served++;
    socket.once("data", () => socket.destroy());
    socket.write(head(["content-length: 2"]) + "ok");
  });
  return { url, served: () => served, connections: () => connections };
}

const head = (lines: readonly string[], status = "200 OK"): string =>
  `HTTP/1.1 ${status}\r\n${lines.join("\r\n")}\r\n\r\n`;

/** Writes the same chunk as long as somebody reads. */
function pour(socket: Socket, chunk: Buffer): void {
  while (!socket.destroyed && socket.write(chunk)) continue;
  if (!socket.destroyed) socket.once("drain", () => pour(socket, chunk));
}

const mebibyte = Buffer.alloc(1 << 20, "x");

/** 5 GB would be; nobody should read that far. */
export function endless(socket: Socket): void {
  socket.write(head(["content-type: text/plain", "content-length: 5368709120"]));
  pour(socket, mebibyte);
}

export function endlessChunks(socket: Socket): void {
  socket.write(head(["transfer-encoding: chunked"]));
  pour(socket, Buffer.from(`10000\r\n${"y".repeat(0x10000)}\r\n`));
}

/** A chunk that never begins, because what stands before it has no end. */
export function endlessExtension(socket: Socket): void {
  socket.write(head(["transfer-encoding: chunked"]) + "5;");
  pour(socket, Buffer.alloc(1 << 16, "e"));
}

/** Answers before the answer, and never the answer. */
export function endlessHints(socket: Socket): void {
  pour(socket, Buffer.from(head(["link: </a>"], "103 Early Hints").repeat(2000)));
}

/** The same after a whole body. */
export function endlessTrailer(socket: Socket): void {
  socket.write(head(["transfer-encoding: chunked"]) + "2\r\nok\r\n0\r\n");
  pour(socket, Buffer.from("x-a: b\r\n".repeat(8000)));
}

/** A thousand times more when it is unpacked, without end. */
export function gzipBomb(socket: Socket): void {
  socket.write(head(["content-encoding: gzip", "content-type: text/plain", "connection: close"]));
  const gzip = createGzip({ level: 9 });
  gzip.on("error", () => undefined);
  gzip.pipe(socket);
  const zeros = Buffer.alloc(1 << 20, "z");
  const fill = (): void => {
    while (!socket.destroyed && gzip.write(zeros)) continue;
    if (!socket.destroyed) gzip.once("drain", fill);
  };
  fill();
}

export function brokenGzip(socket: Socket): void {
  const packed = gzipSync("a text that will be cut");
  socket.end(
    Buffer.concat([Buffer.from(head(["content-encoding: gzip", "connection: close"])), packed.subarray(0, 12)]),
  );
}

export function manyHeaders(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\n");
  const line = Buffer.from("x-header: value\r\n".repeat(1000));
  let written = 0;
  const more = (): void => {
    while (!socket.destroyed && written < 100 && socket.write(line)) written++;
    if (!socket.destroyed && written < 100) socket.once("drain", more);
    else if (!socket.destroyed) socket.end("\r\n");
  };
  more();
}

export function longHeader(socket: Socket): void {
  socket.write(`HTTP/1.1 200 OK\r\nx-long: ${"a".repeat(1 << 20)}\r\n\r\n`);
}

/** One byte at a time, and never the last. */
export function drip(socket: Socket): void {
  socket.write(head(["content-length: 1000000"]));
  const timer = setInterval(() => socket.write("."), 5);
  socket.on("close", () => clearInterval(timer));
}

export function hang(): void {
  // Not a word.
}

export const closesEarly = (socket: Socket): void => void socket.destroy();
export const closesInBody = (socket: Socket): void => void socket.end(head(["content-length: 100"]) + "half");
export const badStatus = (socket: Socket): void => void socket.end(head(["content-length: 0"], "099 Strange"));
export const noHttp = (socket: Socket): void => void socket.end("SSH-2.0-OpenSSH_9.9\r\n");
export const smuggled = (socket: Socket): void =>
  void socket.end(head(["content-length: 5", "transfer-encoding: chunked"]) + "0\r\n\r\n");
export const switches = (socket: Socket): void =>
  void socket.end(head(["upgrade: x", "connection: upgrade"], "101 Switching Protocols"));
