// A pipeline: two jobs in a row that have one fate, and a template from which anybody can ask for more of the same.
//
//   npx node --conditions=@daybook/source examples/pipeline.ts     in this repo, on its sources
import { job, open } from "daybook";
import { z } from "zod";

const fetchOrders = job("fetch-orders", {
  params: z.object({ month: z.string() }),
  backoff: ["0s"],
  run({ month }, { attempt }) {
    // The second job waits for this one, retries included.
    if (attempt === 1) throw new Error("the shop did not answer");
    console.log(`fetched the orders of ${month}`);
  },
});

const sendReport = job("send-report", {
  params: z.object({ month: z.string(), to: z.string() }),
  run({ month, to }) {
    console.log(`sent the report of ${month} to ${to}`);
    return { sentTo: to };
  },
});

await using book = await open(":memory:", { use: [fetchOrders, sendReport] });

// Both jobs are made in one transaction. If the first failed for good, "stop" would cancel the second.
const group = await book.groups.create({ name: "report of May", mode: "sequential", onFailure: "stop" }, (jobs) => {
  jobs.add(fetchOrders, { month: "May" });
  jobs.add(sendReport, { month: "May", to: "ada" });
});

await book.startWorker();
const { status, progress } = await book.groups.wait(group.id, { timeout: "1m" });
console.log(`${status}: ${progress.completed} of ${progress.total} jobs`);

// A template keeps what is always the same. Whoever enqueues from it gives the rest, and may wait for the result.
await book.templates.create("report-for-bob", { job: sendReport, params: { to: "bob" } });
const made = await book.jobs.enqueueFrom("report-for-bob", { month: "June" });
console.log(await made.result({ timeout: "1m" }));
