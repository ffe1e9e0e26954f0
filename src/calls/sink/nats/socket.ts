// The client gives up on a server that takes a connection and says nothing, and leaves the socket open. Each try would leave one more,
// and the process could not end. So the sockets that it opens while it connects are known here, and closed if that fails.
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";

/** Tells our sockets from those that others open meanwhile. */
const connecting = new AsyncLocalStorage<Set<Socket>>();

export async function closingWhatFails<T>(connect: () => Promise<T>): Promise<T> {
  const sockets = new Set<Socket>();
  const note = (message: unknown): void => {
    if (connecting.getStore() !== sockets || typeof message !== "object" || message === null) return;
    if ("socket" in message && message.socket instanceof Socket) sockets.add(message.socket);
  };
  subscribe("net.client.socket", note);
  try {
    return await connecting.run(sockets, connect);
  } catch (error) {
    for (const socket of sockets) socket.destroy();
    throw error;
  } finally {
    unsubscribe("net.client.socket", note);
    sockets.clear();
  }
}
