// Many writers of one record, and the history of a list to which each appends: of those who expect the same revision one
// wins, and no append is lost (R5). Every client is a book of its own, on the same file or database.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { z } from "zod";
import { entity, isDaybookError, type Book } from "../../src/index.ts";
import { openTest, bookUrl, type Backend } from "./open-test.ts";

export const List = entity("list", { schema: z.object({ id: z.string(), items: z.array(z.string()) }), key: "id" });

export async function openClients(t: TestContext, backend: Backend, count: number): Promise<Book[]> {
  const url = await bookUrl(t, backend);
  const books: Book[] = [];
  for (let each = 0; each < count; each++) {
    books.push((await openTest(t, backend, { url, use: [List], worker: false, connections: 3 })).book);
  }
  return books;
}

/** How a client appends: by reading and writing in one transaction, or by a revision that it read before. */
type Append = (book: Book, key: string, item: string) => Promise<boolean>;

const inOne: Append = async (book, key, item) => {
  await book.write(async (tx) => {
    const { items } = await tx.records.get(List, key);
    await tx.records.put(List, { id: key, items: [...items, item] });
  });
  return true;
};

const byRevision: Append = async (book, key, item) => {
  const entry = await book.records.entry(List, key);
  assert.ok(entry);
  await book.records.put(List, { id: key, items: [...entry.value.items, item] }, { ifRevision: entry.revision });
  return true;
};

const byHead: Append = async (book, key, item) => {
  const [head, items] = await book.read(
    async (tx) => [await tx.records.head(), (await tx.records.get(List, key)).items] as const,
  );
  await book.records.put(List, { id: key, items: [...items, item] }, { ifHead: head });
  return true;
};

/** Clients append to a few lists until `go` says stop. What was acknowledged is there, once and in one order. */
export async function appendAll(clients: readonly Book[], go: (appends: number) => boolean): Promise<number> {
  const keys = ["l-1", "l-2"];
  const first = clients[0] as Book;
  for (const id of keys) await first.records.put(List, { id, items: [] });
  const acknowledged: string[] = [];
  let made = 0;
  const refused: string[] = [];
  await Promise.all(
    clients.map(async (book, client) => {
      const append = [inOne, byRevision, byHead][client % 3] as Append;
      for (let round = 0; go(made); round++) {
        const key = keys[round % keys.length] as string;
        const item = `${client}-${round}`;
        try {
          await append(book, key, item);
          acknowledged.push(`${key} ${item}`);
          made++;
        } catch (error) {
          // A conflict is an answer: nothing was written. So is `busy`, after many tries.
          if (!isDaybookError(error) || (error.code !== "conflict" && error.code !== "busy")) throw error;
          refused.push(`${key} ${item}`);
        }
      }
    }),
  );
  const found: string[] = [];
  for (const key of keys) {
    const { items } = await first.records.get(List, key);
    found.push(...items.map((item) => `${key} ${item}`));
    await checkHistory(first, key, items);
  }
  assert.deepEqual(found.toSorted(), acknowledged.toSorted(), "every acknowledged append is there once, and no other");
  assert.equal(await first.records.head(), found.length + keys.length, "every append is a commit of its own");
  assert.deepEqual(await first.doctor(), []);
  return found.length;
}

/** Every version is the one before it with one more item: nothing was lost in between. */
async function checkHistory(book: Book, key: string, last: readonly string[]): Promise<void> {
  let before: readonly string[] = [];
  for (let after = 0; ;) {
    const page: Awaited<ReturnType<typeof book.records.history<typeof List>>> = await book.records.history(List, key, {
      after,
      limit: 500,
    });
    for (const { value, kind } of page.items) {
      const items: readonly string[] = value?.items ?? [];
      if (kind !== "created") assert.deepEqual(items.slice(0, -1), before);
      before = items;
    }
    if (page.next === null) break;
    after = page.next;
  }
  assert.deepEqual(before, last);
}
