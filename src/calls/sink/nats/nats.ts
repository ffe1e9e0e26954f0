// nats(): a sink to NATS JetStream. The message is one CloudEvents document (structured mode). Order and repeats are the engine's:
// the next of a key is published when a stream has acknowledged the one before it.
import { systemClock } from "../../../core/clock.ts";
import { isDaybookError } from "../../../core/error.ts";
import { neverBlamed } from "../../../jobs/outcome.ts";
import type { Broker } from "../broker.ts";
import { cloudEventsJson } from "../message.ts";
import { connect, type Connection } from "./connection.ts";
import { connectFailure, publishFailure } from "./failure.ts";
import { natsSettings, type NatsOptions } from "./options.ts";

/** Where a sink goes: streams of NATS JetStream.
 *
 *  ```ts
 *  const orders = sink("orders", {
 *    on: "order.>",
 *    to: nats({ servers: "nats://127.0.0.1:4222", subject: "shop.{topic}" }),
 *  });
 *  ``` */
export function nats(options: NatsOptions): { readonly broker: Broker } {
  const settings = natsSettings(options);
  let open: Promise<Connection> | undefined;
  /** Since when no server has answered, by the clock that never goes back. */
  let awaySince: number | undefined;

  function connection(): Promise<Connection> {
    if (open !== undefined) return open;
    const mine = connect(settings);
    const forget = (): void => void (open === mine && (open = undefined));
    open = mine;
    mine.then(
      ({ ended }) => {
        awaySince = undefined;
        void ended.then(forget, forget);
      },
      () => {
        awaySince ??= systemClock.monotonic();
        forget();
      },
    );
    return mine;
  }

  async function close(): Promise<void> {
    const mine = open;
    open = undefined;
    const connected = await mine?.catch(() => undefined);
    await connected?.close();
  }

  const broker: Broker = {
    // No code of the user runs in it, and what it reads is bounded.
    losses: neverBlamed,
    async publish(message, { signal, tenant, messageId: id }) {
      const subject = settings.subjectFor(message, tenant);
      const body = JSON.stringify(message);
      let connected: Connection;
      try {
        connected = await until(signal, connection);
      } catch (error) {
        if (signal.aborted || isDaybookError(error)) throw error;
        const now = systemClock.monotonic();
        throw connectFailure(error, settings, now - (awaySince ?? now));
      }
      try {
        await until(signal, () => connected.publish({ subject, id, body, type: cloudEventsJson }));
      } catch (error) {
        if (signal.aborted) throw error;
        const failed = publishFailure(error, settings, subject);
        // Whoever does not answer may be gone without a word: the next one connects anew.
        if (isDaybookError(failed) && failed.code === "timeout") void close().catch(() => undefined);
        throw failed;
      }
    },
    close,
  };
  return { broker };
}

/** What it comes to, unless the run has to end before. */
async function until<T>(signal: AbortSignal, start: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const end = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([start(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}
