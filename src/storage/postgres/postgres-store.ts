// A book on PostgreSQL: a pipelined connection for shared groups, a pool for everything else, one that listens.
import type { Client, Pool } from "pg";
import { DaybookError, invalid } from "../../core/error.ts";
import { jitter, systemRandom } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { tellAll } from "../unit.ts";
import type { Migration } from "../migrate.ts";
import type { EngineParts } from "../open-store.ts";
import { render, type Sql } from "../sql.ts";
import { createUnderWay, neverDue, type EngineStore, type Reader, type Stamp } from "../store.ts";
import {
  connectClient,
  control,
  createPool,
  patience,
  quoteName,
  readsOnly,
  redactUrl,
  send,
  sendAlone,
  type Server,
} from "./connect.ts";
import { joinTransaction } from "./join-transaction.ts";
import { migratePostgres } from "./migrate-postgres.ts";
import { runOwnTransaction } from "./own-transaction.ts";
import { fromPostgresError } from "./postgres-error.ts";
import { createPostgresReads } from "./reads.ts";
import { createSharedGroups } from "./shared-group.ts";

/** What the ways of running a unit share. */
export type PostgresParts = EngineParts & {
  readonly server: Server;
  readonly location: string;
  readonly channel: string;
  /** Marks this process's own notices, so that it ignores them. */
  readonly origin: string;
  readonly pool: Pool;
  readonly stamp: () => Stamp;
  readonly woken: (channels: ReadonlySet<string>) => void;
  /** Until when a user's units take turns for what they compete for, by its name. */
  readonly busyUntil: Map<string, number>;
};

const connectionsDefault = 8;

export async function openPostgres(
  url: string,
  migrations: readonly Migration[],
  given: EngineParts,
): Promise<EngineStore> {
  const { time } = given;
  const schema = checkSchema(given.schema ?? "daybook");
  const server: Server = { url, schema, fault: given.fault };
  const location = redactUrl(url);
  await prepareSchema(server, migrations, given);

  const pool = await createPool(server, given.connections ?? connectionsDefault);
  const readPool = await createPool(server, limits.readsMax + limits.snapshotsMax, true);
  const reads = createPostgresReads({ server, location, pool: readPool, writers: pool });
  const underWay = createUnderWay();
  const listeners = new Set<(channel: string | null) => void>();
  const hear = (channel: string | null): void => tellAll(listeners, channel);
  let listening: Listening | undefined;
  let stamp: Stamp = neverDue;
  let closing: Promise<void> | undefined;
  const parts: PostgresParts = {
    ...given,
    server,
    location,
    channel: `daybook:${schema}`,
    origin: systemRandom().toString(36).slice(2),
    pool,
    stamp: () => stamp,
    woken: (channels) => channels.forEach(hear),
    busyUntil: new Map(),
  };
  const groups = createSharedGroups(parts);

  async function read<R>(statement: Sql): Promise<R[]> {
    refuseClosed("read");
    return (await underWay.track(sendAlone(pool, render(statement, "postgres"), server))).rows as R[];
  }
  // On a connection of its own: it may take minutes.
  async function readsLong<T>(run: (reader: Reader) => Promise<T>): Promise<T> {
    const client = await connectClient(server, readsOnly, patience);
    try {
      const all = async <R>(statement: Sql): Promise<R[]> =>
        (await send(client, render(statement, "postgres"), server, false)).rows as R[];
      return await run({
        dialect: "postgres",
        all,
        page: async (statement) => ({ rows: await all(statement), more: false }),
      });
    } finally {
      await client.end();
    }
  }
  function refuseClosed(verb: string): void {
    if (closing !== undefined) throw new DaybookError("closed", `the book is closed: open it again to ${verb}`);
  }

  return {
    dialect: "postgres",
    location,
    threadLocation: url,
    schema,
    async write(unit, how = {}) {
      refuseClosed("write");
      // Units run side by side here, so one that began by the wrong time now would escape what puts that right.
      while (how.putsRight !== true && time.isWrong()) await time.putRight();
      if (how.by === "shared") return groups.add(unit, how);
      return underWay.track(runOwnTransaction(parts, unit, how));
    },
    async join(client, unit, tenant) {
      refuseClosed("join");
      while (time.isWrong()) await time.putRight();
      return underWay.track(joinTransaction(parts, client, unit, tenant));
    },
    begunEnded: () => Promise.allSettled([underWay.begunEnded(), groups.begunEnded()]),
    read,
    readHeavy: (statement, who) => reads.all(statement, who),
    readPage: (statement, who) => reads.page(statement, who),
    async readsLong(run) {
      refuseClosed("read");
      return underWay.track(readsLong(run));
    },
    snapshot: (run, who) => reads.snapshot(run, who),
    onWake(listener) {
      listeners.add(listener);
      listening ??= listenPostgres(parts, hear);
      return () => listeners.delete(listener);
    },
    beforeCommit: (run) => void (stamp = run),
    abandon: () => undefined,
    unref() {
      groups.unref();
      // No listener waits for news any more, and the connection would come back for ever.
      void listening?.close();
    },
    close: () =>
      (closing ??= (async () => {
        await Promise.all([groups.drain(), underWay.settled(), reads.close()]);
        await listening?.close();
        await pool.end();
      })()),
  };
}

// Names end after 63 bytes on PostgreSQL, without a word, and that of the channel begins with "daybook:".
const schemaBytesMax = 55;

function checkSchema(name: string): string {
  const bytes = Buffer.byteLength(checkName(name, "schema"));
  if (bytes > schemaBytesMax) throw invalid(`schema "${name}" is ${bytes} bytes long: at most ${schemaBytesMax}`);
  return name;
}

async function prepareSchema(server: Server, migrations: readonly Migration[], options: EngineParts): Promise<void> {
  const client = await connectClient(server, patience);
  try {
    await migratePostgres(client, server, migrations, { apply: options.migrate !== false, clock: options.clock });
  } catch (error) {
    throw fromPostgresError(error, redactUrl(server.url));
  } finally {
    await client.end();
  }
}

type Listening = { close(): Promise<void> };

/** Hears the NOTIFYs of other processes on a connection of its own, and comes back when that connection is lost. */
function listenPostgres(parts: PostgresParts, hear: (channel: string | null) => void): Listening {
  const { waitClock, random } = parts;
  const stop = new AbortController();
  let client: Client | undefined;

  async function stayConnected(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; failures++) {
      try {
        client = await connectClient(parts.server);
        const lost = new Promise<void>((resolve) => client?.once("end", resolve));
        // The store was closed while this connected: nothing else knows of the connection yet.
        if (stop.signal.aborted) await client.end();
        client.on("notification", ({ payload = "" }) => {
          const [origin = "", channel = null] = payload.split(" ");
          if (origin !== parts.origin) hear(channel);
        });
        await control(client, `listen ${quoteName(parts.channel)}`, parts.server);
        // The server does not repeat what was said while this connection did not listen, so every listener looks once.
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
