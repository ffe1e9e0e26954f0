// One connection to NATS. The client is an optional peer: a program without such a sink must not need it.
import type * as Transport from "@nats-io/transport-node";
import type * as JetStream from "@nats-io/jetstream";
import { DaybookError, invalid } from "../../../core/error.ts";
import type { NatsIdentity } from "./auth.ts";
import type { NatsSettings } from "./options.ts";
import { closingWhatFails } from "./socket.ts";
import { clientTls } from "./tls.ts";

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
  /** Resolves when it has ended, by whomever. */
  readonly ended: Promise<unknown>;
};

/** Only what decides how the client behaves is said here; addresses and secrets are the program's. */
export async function connect({ servers, identity, tls, timeoutMs, stream }: NatsSettings): Promise<Connection> {
  const { transport, jetstream } = await loadClient();
  const options = {
    ...{ servers: [...servers], timeout: timeoutMs, name: "daybook" },
    // A message is tried again by the engine alone. A client that connects by itself keeps what it could not send, and would send
    // it after others of its key.
    ...{ reconnect: false, noAsyncTraces: true },
    // So long, and as long again, until a connection that leads nowhere is given up.
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
        ...{ msgID: id, headers, timeout: timeoutMs },
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
    // A seed has a checksum, and what fails while it connects looks to us like a server that is away.
    made("");
  } catch (cause) {
    throw invalid("the seed in auth of nats() is not whole: copy it again", { cause });
  }
  return made;
}
