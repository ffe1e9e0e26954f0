// Publishes twice, two events in each transaction, without working itself.
import { open } from "../../src/index.ts";

const [url = ""] = process.argv.slice(2);
const book = await open(url, { worker: false });
for (let n = 0; n < 2; n++) {
  await book.write(async (tx) => {
    await tx.events.publish("talk.said", { n }, { key: "k" });
    await tx.events.publish("talk.said", { n }, { dedupeKey: `d-${n}` });
  });
}
await book.close();
