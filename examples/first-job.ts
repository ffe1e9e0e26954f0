// A first job: enqueued together with the data it belongs to, tried again when it fails, and finished together with
// its effect.
//
//   npx node --conditions=@daybook/source examples/first-job.ts     in this repo, on its sources
import { job, open } from "daybook";
import { z } from "zod";

// What the work is called, what it takes, and what it does.
const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string() }),
  attempts: 3,
  backoff: ["0s", "1m"],
  run({ orderId }, { attempt, log, finish }) {
    log("writing to the customer", { orderId });
    if (attempt === 1) throw new Error("the mail server did not answer");
    // This row and the end of the job are one commit: it is there exactly once, whatever crashes when.
    return finish((tx) => tx.sql`insert into receipt (order_id, sent_at) values (${orderId}, ${tx.now})`);
  },
});

const askForReview = job("ask-for-review", {
  params: z.object({ orderId: z.string() }),
  run: ({ orderId }) => `asked about ${orderId}`,
});

// A file such as "shop.db" keeps it all; this book is gone at the end.
await using book = await open(":memory:", { use: [sendReceipt, askForReview] });

await book.write(async (tx) => {
  await tx.sql`create table purchase (id text primary key, cents integer not null)`;
  await tx.sql`create table receipt (order_id text primary key, sent_at integer not null)`;
});

// The order and its jobs: all of it happens, or none of it.
await book.write(async (tx) => {
  await tx.sql`insert into purchase (id, cents) values (${"o-17"}, ${4000})`;
  await tx.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { key: "o-17" });
  await tx.jobs.enqueue(askForReview, { orderId: "o-17" }, { in: "7d" });
});

// Works until nothing is left that could run now. A service says `await book.work()` and works until it is stopped.
const worker = await book.startWorker();
await worker.idle();

// The history: a retry is a job of its own, and what waits can say for what.
for (const { id, name, status, attempt, run } of (await book.jobs.list()).items.toReversed()) {
  const { because } = await book.jobs.explain(id);
  console.log(`${name}, attempt ${attempt}: ${status}. ${because[0]}`);
  for (const line of run === null ? [] : await book.runs.logs(run.id)) console.log(`  log: ${line.message}`);
}
const [receipt] = await book.read((tx) => tx.sql<{ order_id: string }>`select order_id from receipt`);
console.log(`The receipt of ${receipt?.order_id} was sent once.`);
