// A book on PostgreSQL: a pipelined connection for shared groups, a pool for everything else, one that listens.
import type { Pool } from "pg";
import type { Clock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import type { Ids } from "../../core/id.ts";
import type { Random } from "../../core/random.ts";
import { checkName } from "../../core/name.ts";
import type { Migration } from "../migrate.ts";
import type { StoreOptions } from "../open-store.ts";
import { render, type Sql } from "../sql.ts";
import { neverDue, type Stamp, type Store } from "../store.ts";
import { connectClient, createPool, redactUrl, send, type Server } from "./connect.ts";
import { listenPostgres, type Listening } from "./listen.ts";
import { migratePostgres } from "./migrate-postgres.ts";
import { runOwnTransaction } from "./own-transaction.ts";
import { fromPostgresError } from "./postgres-error.ts";
import { createSharedGroups } from "./shared-group.ts";
import { readSnapshot } from "./snapshot.ts";

/** What the ways of running a unit share. */
export type PostgresParts = {
  readonly server: Server;
  readonly location: string;
  readonly channel: string;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly nextNow: () => number;
  readonly stamp: () => Stamp;
  readonly woken: (channels: ReadonlySet<string>) => void;
  readonly closing: () => boolean;
};

const connectionsDefault = 8;

export async function openPostgres(
  url: string,
  migrations: readonly Migration[],
  options: StoreOptions,
): Promise<Store> {
  const { clock, ids, random } = options;
  const schema = checkName(options.schema ?? "daybook", "schema");
  const server: Server = { url, schema, fault: options.fault };
  const location = redactUrl(url);
  await prepareSchema(server, migrations, options);

  const pool = await createPool(server, options.connections ?? connectionsDefault);
  const listeners = new Set<(channel: string | null) => void>();
  const hear = (channel: string | null): void => listeners.forEach((listener) => listener(channel));
  let listening: Listening | undefined;
  let stamp: Stamp = neverDue;
  let lastNow = 0;
  let closing: Promise<void> | undefined;
  const parts: PostgresParts = {
    server,
    location,
    channel: `daybook:${schema}`,
    pool,
    clock,
    ids,
    random,
    nextNow: () => (lastNow = Math.max(lastNow, clock.now())),
    stamp: () => stamp,
    woken: (channels) => channels.forEach(hear),
    closing: () => closing !== undefined,
  };
  const groups = createSharedGroups(parts);

  async function read<R>(statement: Sql): Promise<R[]> {
    refuseClosed("read");
    return (await send(pool, render(statement, "postgres"), server)).rows as R[];
  }
  function refuseClosed(verb: string): void {
    if (closing !== undefined) throw new DaybookError("closed", `the book is closed: open it again to ${verb}`);
  }

  return {
    dialect: "postgres",
    location,
    threadLocation: url,
    schema,
    clock,
    ids,
    random,
    async write(unit, how = {}) {
      refuseClosed("write");
      if (how.by === "shared") return groups.add(unit, how.tenant ?? "default");
      return runOwnTransaction(parts, unit, how);
    },
    read,
    readHeavy: read,
    readLong: read,
    async snapshot(run) {
      refuseClosed("read");
      return readSnapshot(parts, run);
    },
    onWake(listener) {
      listeners.add(listener);
      listening ??= listenPostgres(parts, hear);
      return () => listeners.delete(listener);
    },
    beforeCommit: (run) => void (stamp = run),
    abandon: () => undefined,
    close: () =>
      (closing ??= (async () => {
        await groups.drain();
        await listening?.close();
        await pool.end();
      })()),
  };
}

async function prepareSchema(server: Server, migrations: readonly Migration[], options: StoreOptions): Promise<void> {
  const client = await connectClient(server);
  try {
    await migratePostgres(client, server, migrations, { apply: options.migrate !== false, clock: options.clock });
  } catch (error) {
    throw fromPostgresError(error, redactUrl(server.url));
  } finally {
    await client.end();
  }
}
