// A disk that is really full: a small one is mounted where that is allowed (root on Linux); elsewhere the file may not grow
// beyond some pages, which SQLite reports in the same way.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, open } from "../../src/index.ts";
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { cleanup, openTestStore, testFolder } from "../support/open-test.ts";
import { createPairs, numbered, readPairs, unitOf, writePair } from "./pair.ts";

const diskBytes = 6 * 1_048_576;
const ballastBytes = 1_048_576;

/** A folder on a disk of its own; undefined where nothing may be mounted. */
function mountSmallDisk(t: TestContext): string | undefined {
  const folder = testFolder(t);
  if (!succeeds("mount", "-t", "tmpfs", "-o", `size=${diskBytes}`, "daybook-test", folder)) return undefined;
  cleanup(t, () => succeeds("umount", "-l", folder));
  return folder;
}

function succeeds(program: "mount" | "umount", ...words: string[]): boolean {
  return spawnSync(program, words).status === 0;
}

/** A store with little room, and a way to give it some. */
async function openCramped(t: TestContext): Promise<{ store: Store; makeRoom(): Promise<void> }> {
  const folder = mountSmallDisk(t);
  if (folder === undefined) {
    const { store } = await openTestStore(t, "sqlite");
    const limit = async (pages: number): Promise<void> =>
      void (await store.write((tx) => tx.get(rawSql(`pragma max_page_count = ${pages}`))));
    await limit(diskBytes / 2 / 4096);
    return { store, makeRoom: () => limit(100_000) };
  }
  writeFileSync(join(folder, "ballast"), Buffer.alloc(ballastBytes));
  const { store } = await openTestStore(t, "sqlite", { url: join(folder, "test.db") });
  return { store, makeRoom: async () => rmSync(join(folder, "ballast")) };
}

const codeOf = (outcome: PromiseSettledResult<string>): string =>
  outcome.status === "fulfilled" ? outcome.value : String((outcome.reason as { code?: string }).code);

for (const by of ["user", "engine"] as const) {
  test(`${unitOf(by)} that does not fit on the disk is refused as full, and its neighbours are kept`, async (t) => {
    const { store } = await openCramped(t);
    await createPairs(store);
    const ids = numbered(40);
    const isBig = (id: string): boolean => Number(id) % 13 === 5;
    const big = "x".repeat(diskBytes);

    const outcomes = await Promise.allSettled(
      ids.map((id) => store.write((tx) => writePair(tx, id, isBig(id) ? big : ""), { by })),
    );

    assert.deepEqual(
      outcomes.map(codeOf),
      ids.map((id) => (isBig(id) ? "full" : id)),
    );
    assert.deepEqual(
      await readPairs(store),
      ids.filter((id) => !isBig(id)),
    );
  });

  test(`${by} units that fill the disk are kept as far as they were acknowledged, and go on when there is room`, async (t) => {
    const { store, makeRoom } = await openCramped(t);
    await createPairs(store);
    const filler = "x".repeat(100_000);
    const ids = numbered(60);

    const outcomes = await Promise.allSettled(ids.map((id) => store.write((tx) => writePair(tx, id, filler), { by })));
    const acknowledged = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const refusals = new Set(outcomes.filter((outcome) => outcome.status === "rejected").map(codeOf));

    assert.deepEqual(refusals, new Set(["full"]));
    assert.ok(acknowledged.length > 0);
    assert.deepEqual(await readPairs(store), acknowledged);
    await makeRoom();
    await store.write((tx) => writePair(tx, "zzz", filler), { by });
    assert.deepEqual(await readPairs(store), [...acknowledged, "zzz"]);
  });
}

test("a new book on a full disk is refused as full, and no file is left", async (t) => {
  const folder = mountSmallDisk(t);
  if (folder === undefined) return t.diagnostic("nothing may be mounted here, so no disk is full");
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(join(folder, "ballast"), Buffer.alloc(bavail * bsize));

  await assert.rejects(open(join(folder, "shop.db")), { code: "full", message: /no room for a new book/ });

  assert.deepEqual(readdirSync(folder), ["ballast"]);
});

test("a book on a full disk can still be opened and read, and says full when it is written", async (t) => {
  const folder = mountSmallDisk(t);
  if (folder === undefined) return t.diagnostic("nothing may be mounted here, so no disk is full");
  const url = join(folder, "test.db");
  const { store } = await openTestStore(t, "sqlite", { url });
  await createPairs(store);
  await store.write((tx) => writePair(tx, "kept"));
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(join(folder, "ballast"), Buffer.alloc(bavail * bsize));

  const { store: second } = await openTestStore(t, "sqlite", { url });

  assert.deepEqual(await readPairs(second), ["kept"]);
  await assert.rejects(
    second.write((tx) => writePair(tx, "more", "x".repeat(100_000))),
    { code: "full" },
  );
  assert.deepEqual(await readPairs(second), ["kept"]);
});

test("a backup or an index that does not fit is refused before it begins", async (t) => {
  const small = mountSmallDisk(t);
  if (small === undefined) return t.diagnostic("nothing may be mounted here, so no disk is full");
  const url = join(small, "test.db");
  const { store } = await openTestStore(t, "sqlite", { url });
  await createPairs(store);
  await store.write((tx) => writePair(tx, "kept"));
  await store.close();
  const { bavail, bsize } = statfsSync(small);
  writeFileSync(join(small, "ballast"), Buffer.alloc(bavail * bsize - statSync(url).size * 0.4));
  const Note = entity("note", { schema: z.object({ id: z.string(), n: z.number() }), key: "id", indexes: ["n"] });

  await assert.rejects(open(url, { use: [Note] }), {
    code: "full",
    message: /no room for an index: it takes about \d+ MB/,
  });
  const book = await open(url, { worker: false });
  await assert.rejects(book.backup(join(small, "copy.db")), { code: "full", message: /no room for the backup/ });

  assert.deepEqual(
    readdirSync(small).filter((name) => name.startsWith("copy")),
    [],
  );
  await book.close();
});

test("a backup needs room for what the book holds, not for the pages of what was removed", async (t) => {
  const small = mountSmallDisk(t);
  if (small === undefined) return t.diagnostic("nothing may be mounted here, so no disk is full");
  const url = join(testFolder(t), "test.db");
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table note (body text)`);
  for (let at = 0; at < 4; at++)
    await book.write((tx) => tx.sql`insert into note values (${"x".repeat(diskBytes / 2)})`);
  await assert.rejects(book.backup(join(small, "copy.db")), { code: "full", message: /no room for the backup/ });
  await book.write((tx) => tx.sql`delete from note`);

  const { bytes } = await book.backup(join(small, "copy.db"));

  assert.ok(bytes < diskBytes / 2, String(bytes));
  assert.ok(statSync(url).size + statSync(`${url}-wal`).size > diskBytes, "the file has become smaller");
});
