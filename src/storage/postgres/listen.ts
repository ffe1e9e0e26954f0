// Hears the NOTIFYs of other processes on a connection of its own, and comes back when that connection is lost.
import type { Client } from "pg";
import type { Clock } from "../../core/clock.ts";
import { jitter, type Random } from "../../core/id.ts";
import { connectClient, control, quoteName, type Server } from "./connect.ts";

export type Listening = { close(): Promise<void> };

type Parts = { server: Server; channel: string; origin: string; waitClock: Clock; random: Random };

export function listenPostgres(parts: Parts, hear: (channel: string | null) => void): Listening {
  const { waitClock, random } = parts;
  const stop = new AbortController();
  let client: Client | undefined;

  async function stayConnected(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; failures++) {
      try {
        client = await connectClient(parts.server);
        const lost = new Promise<void>((resolve) => client?.once("end", resolve));
        // Closed while it connected: nobody else knows of this connection yet.
        if (stop.signal.aborted) await client.end();
        client.on("notification", ({ payload = "" }) => {
          const [origin = "", channel = null] = payload.split(" ");
          if (origin !== parts.origin) hear(channel);
        });
        await control(client, `listen ${quoteName(parts.channel)}`, parts.server);
        // Whatever was said while nobody listened yet, or any more, is not repeated, so everybody looks once.
        hear(null);
        failures = 0;
        await lost;
      } catch {
        // A server that refuses `listen`, as a standby does, has not ended the connection.
        await client?.end().catch(() => undefined);
      }
      client = undefined;
      if (!stop.signal.aborted) {
        await waitClock.sleep(jitter(random, Math.min(5000, 100 * 2 ** Math.min(failures, 6))), stop.signal);
      }
    }
  }
  const done = stayConnected();

  return {
    async close() {
      stop.abort();
      await client?.end().catch(() => undefined);
      await done;
    },
  };
}
