// Stands between the driver and the server, hears the statements and can cut the wire at a chosen one.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { cleanup } from "../support/open-test.ts";

/** `request`: the statement never reaches the server. `answer`: it does, and what the server says is lost. */
export type Loss = "request" | "answer";

export type PostgresProxy = {
  readonly url: string;
  /** How often the statement was sent without parameters: begin, commit and their like. */
  count(text: string): number;
  /** Cuts the next connection that sends this statement, once. */
  cutAt(text: string, loss: Loss): void;
  /** Cuts every connection, and new ones as they come, until `up`. It keeps its port, which others would take. */
  down(): void;
  up(): void;
};

export async function startProxy(t: TestContext, url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  const counts = new Map<string, number>();
  const sockets = new Set<Socket>();
  let isDown = false;
  let planned: { text: string; loss: Loss } | undefined;

  const proxy = createServer((client) => {
    if (isDown) return void client.destroy();
    const server = connect(Number(target.port), target.hostname);
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true).on("error", end).on("close", end);
    }
    const messages = messageReader();
    let isCut = false;
    client.on("data", (bytes: Buffer) => {
      for (const message of messages(bytes)) {
        const text = simpleQuery(message);
        if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
        if (planned !== undefined && text === planned.text) {
          const { loss } = planned;
          planned = undefined;
          if (loss === "request") return end();
          isCut = true;
        }
        server.write(message);
      }
    });
    server.on("data", (bytes: Buffer) => (isCut ? end() : client.write(bytes)));
  });
  const through = new URL(url);
  const down = (): void => {
    isDown = true;
    for (const socket of sockets) socket.destroy();
  };
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  cleanup(t, () => {
    down();
    proxy.close();
  });

  through.port = String((proxy.address() as AddressInfo).port);
  return {
    url: through.href,
    count: (text) => counts.get(text) ?? 0,
    cutAt: (text, loss) => void (planned = { text, loss }),
    down,
    up: () => void (isDown = false),
  };
}

/** Splits the stream into whole messages. All but the first begin with a byte that names their kind. */
function messageReader(): (bytes: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0);
  let kindBytes = 0;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const whole: Buffer[] = [];
    while (rest.length >= kindBytes + 4) {
      const length = kindBytes + rest.readInt32BE(kindBytes);
      if (rest.length < length) break;
      whole.push(rest.subarray(0, length));
      rest = rest.subarray(length);
      kindBytes = 1;
    }
    return whole;
  };
}

function simpleQuery(message: Buffer): string | undefined {
  return message[0] === "Q".charCodeAt(0) ? message.toString("utf8", 5, message.length - 1) : undefined;
}
