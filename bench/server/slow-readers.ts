// Programs that ask for the live stream and then take nothing of it.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Served } from "./load.ts";

/** Returns what ends them. */
export async function openSlowReaders({ port, token }: Served, count: number): Promise<() => void> {
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    const head = [`GET /api/v1/stream HTTP/1.1`, `host: 127.0.0.1:${port}`, `authorization: Bearer ${token}`];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    // The head of the answer has come: from now on nothing is taken.
    await once(socket, "data");
    socket.pause();
    sockets.push(socket);
  }
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}
