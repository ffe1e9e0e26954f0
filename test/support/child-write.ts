// Opens a book and, each time it is told an id, writes it as a pair and wakes the channel of that name.
import { createInterface } from "node:readline";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { writePair } from "../storage/pair.ts";

const store = await openStore(process.argv[2] ?? "", migrations);
console.log("open");
for await (const id of createInterface({ input: process.stdin })) {
  await store.write(async (tx) => {
    await writePair(tx, id);
    tx.wake(id);
  });
  console.log(id);
}
await store.close();
