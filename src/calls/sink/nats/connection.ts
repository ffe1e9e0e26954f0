// One connection to NATS. The client is an optional peer dependency: a program without a NATS sink does not need it.
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import type * as JetStream from "@nats-io/jetstream";
import type * as Transport from "@nats-io/transport-node";
import { DaybookError, invalid } from "../../../core/error.ts";
import { type NatsIdentity, type NatsSettings, clientTls } from "./options.ts";

export type NatsMessage = {
  readonly subject: string;
  readonly id: string;
  readonly body: string;
  readonly type: string;
};

export type Connection = {
  /** Resolves once a stream has it. */
  publish(message: NatsMessage): Promise<void>;
  close(): Promise<void>;
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
};

export async function connect({ servers, identity, tls, timeoutMs, stream }: NatsSettings): Promise<Connection> {
  const { transport, jetstream } = await loadClient();
  const options = {
    servers: [...servers],
    timeout: timeoutMs,
    name: "daybook",
    // Only the engine retries. A client that reconnects keeps unsent messages, and would send them after later ones of their key.
    reconnect: false,
    noAsyncTraces: true,
    // A dead connection is given up after two intervals.
    pingInterval: 20_000,
    ...(identity === undefined ? {} : { authenticator: authenticator(transport, identity) }),
    ...(tls === undefined ? {} : { tls: clientTls(tls, servers) }),
  };
  const connection = await closingWhatFails(() => transport.connect(options));
  const streams = jetstream.jetstream(connection, { timeout: timeoutMs });
  return {
    async publish({ subject, id, body, type }) {
      const headers = transport.headers();
      headers.set("content-type", type);
      await streams.publish(subject, body, {
        msgID: id,
        headers,
        timeout: timeoutMs,
        ...(stream === undefined ? {} : { expect: { streamName: stream } }),
      });
    },
    close: () => connection.close(),
    ended: connection.closed(),
  };
}

type Client = { readonly transport: typeof Transport; readonly jetstream: typeof JetStream };

async function loadClient(): Promise<Client> {
  try {
    const [transport, jetstream] = await Promise.all([import("@nats-io/transport-node"), import("@nats-io/jetstream")]);
    return { transport, jetstream };
  } catch (cause) {
    const names = "@nats-io/transport-node @nats-io/jetstream";
    throw new DaybookError("unavailable", `a sink to NATS needs two packages: npm install ${names}`, { cause });
  }
}

function authenticator(transport: typeof Transport, identity: NatsIdentity): Transport.Authenticator {
  if ("token" in identity) return transport.tokenAuthenticator(identity.token);
  if ("user" in identity) return transport.usernamePasswordAuthenticator(identity.user, identity.password);
  const seed = new TextEncoder().encode(identity.nkey);
  const made = "jwt" in identity ? transport.jwtAuthenticator(identity.jwt, seed) : transport.nkeyAuthenticator(seed);
  try {
    // Checks the seed's checksum now: while connecting, a bad seed would look like a server that is away.
    made("");
  } catch (cause) {
    throw invalid("the seed in auth of nats() is not whole: copy it again", { cause });
  }
  return made;
}

/** Tells the client's sockets from those that other code opens meanwhile. */
const connecting = new AsyncLocalStorage<Set<Socket>>();

// The client gives up on a server that accepts a connection and says nothing, but leaves the socket open. Each try would leave one
// more, and the process could not end. So this notes the sockets that the client opens, and closes them if connecting fails.
async function closingWhatFails<T>(connect: () => Promise<T>): Promise<T> {
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
