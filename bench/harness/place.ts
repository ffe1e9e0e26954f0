// A place for one measurement and nobody after it: a file, or a database on the benchmark's server.
import { rmSync } from "node:fs";
import { Client } from "pg";
import { scratch } from "./scratch.ts";

let count = 0;

export async function withFile<T>(work: (path: string) => Promise<T>): Promise<T> {
  const path = scratch(`queue-${++count}.db`);
  try {
    return await work(path);
  } finally {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
  }
}

export async function withDatabase<T>(server: string, work: (url: string) => Promise<T>): Promise<T> {
  const name = `bench_${++count}`;
  await execute(server, [`create database ${name}`, "checkpoint"]);
  try {
    const url = new URL(server);
    url.pathname = name;
    return await work(url.href);
  } finally {
    await execute(server, [`drop database if exists ${name} with (force)`]);
  }
}

async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** What a PostgreSQL promises, in its own words. */
export async function describePostgres(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const names = ["server_version", "fsync", "synchronous_commit", "shared_buffers", "max_wal_size"];
    const { rows } = await client.query<{ name: string; value: string }>(
      "select name, current_setting(name) as value from unnest($1::text[]) as name",
      [names],
    );
    const [version, ...others] = rows;
    return `PostgreSQL ${version?.value}, ${others.map(({ name, value }) => `${name} ${value}`).join(", ")}`;
  } finally {
    await client.end();
  }
}
