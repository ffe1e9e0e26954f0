// Opens a book for one test, on either back end, and takes everything away again when the test ends.
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { open, type Book, type OpenOptions } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore, type StoreOptions } from "../../src/storage/open-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { freshDatabase, migratedDatabase } from "./postgres.ts";
import { fastPlace, makeScratch, removeScratch } from "./scratch.ts";

export type Backend = "sqlite" | "postgres";
export const backends: readonly Backend[] = ["sqlite", "postgres"];

const cleanups = new WeakMap<TestContext, (() => unknown)[]>();

/** Like `t.after`, but the last comes first: a book is closed before its folder is removed. */
export function cleanup(t: TestContext, run: () => unknown): void {
  const known = cleanups.get(t);
  if (known !== undefined) return void known.push(run);
  const stack = [run];
  cleanups.set(t, stack);
  t.after(async () => {
    for (const each of stack.toReversed()) await each();
  });
}

/** A place for a book that no other test sees: a file in a folder of its own, or a database. */
export async function testUrl(t: TestContext, backend: Backend): Promise<string> {
  if (backend === "sqlite") return join(testFolder(t), "test.db");
  const database = await freshDatabase();
  cleanup(t, () => database.drop());
  return database.url;
}

/** The same with the book's schema in it, which spares a test the time to migrate. */
export async function bookUrl(t: TestContext, backend: Backend): Promise<string> {
  if (backend === "postgres") {
    const database = await migratedDatabase();
    cleanup(t, () => database.drop());
    return database.url;
  }
  const url = join(testFolder(t), "test.db");
  copyFileSync(await (migratedFile ??= makeFile()), url);
  return url;
}

let migratedFile: Promise<string> | undefined;

async function makeFile(): Promise<string> {
  const folder = makeScratch(fastPlace(), "test");
  process.once("exit", () => removeScratch(folder));
  const file = join(folder, "migrated.db");
  const store = await openStore(file, migrations);
  await store.close();
  return file;
}

/** In memory where the machine has room: a disk takes milliseconds for each commit, and no test cuts the power. */
export function testFolder(t: TestContext, place = fastPlace()): string {
  const folder = makeScratch(place, "test");
  cleanup(t, () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A program of its own: a shell is given no params. A ramdisk often forbids running programs. */
export function shellScript(t: TestContext, text: string): string {
  const file = join(testFolder(t, tmpdir()), "script.sh");
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}

export async function openTest(
  t: TestContext,
  backend: Backend,
  options: OpenOptions & { url?: string } = {},
): Promise<{ book: Book; url: string }> {
  const { url = await bookUrl(t, backend), durability, connections, ...rest } = options;
  // Tests of both back ends name what only one of them has, and a book refuses what would do nothing.
  const own = backend === "sqlite" ? { durability } : { connections };
  const book = await open(url, { ...rest, ...definedOnly(own) });
  cleanup(t, () => book.close());
  return { book, url };
}

function definedOnly<T extends object>(options: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}

/** The ground alone: a store with the book's schema and no session. */
export async function openTestStore(
  t: TestContext,
  backend: Backend,
  options: Partial<StoreOptions> & { url?: string } = {},
): Promise<{ store: Store; url: string }> {
  const { url = await bookUrl(t, backend), ...rest } = options;
  const store = await openStore(url, migrations, rest);
  cleanup(t, () => store.close());
  return { store, url };
}
