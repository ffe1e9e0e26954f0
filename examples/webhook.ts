// A webhook: an order is paid and its notification submitted in one transaction; the first answer is a 503, the second a 200.
//
//   npx node --conditions=@daybook/source examples/webhook.ts     in this repo, on its sources
import { createServer } from "node:http";
import { open } from "daybook";

let requests = 0;
const receiver = createServer((request, response) => {
  const { headers } = request;
  console.log(`request ${++requests}: signed ${typeof headers["webhook-signature"] === "string"}`);
  response.writeHead(requests === 1 ? 503 : 200).end(requests === 1 ? "not now" : "thank you");
});
await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const address = receiver.address();
const port = typeof address === "object" && address !== null ? address.port : 0;

await using book = await open(":memory:", {
  calls: { key: Buffer.alloc(32, 7), allow: [`127.0.0.1:${port}`] },
});
await book.write((tx) => tx.sql`create table paid (order_id text primary key)`);

const { id } = await book.write(async (tx) => {
  await tx.sql`insert into paid (order_id) values (${"o-17"})`;
  return tx.calls.submit({
    name: "order paid",
    url: `http://127.0.0.1:${port}/hooks`,
    json: { orderId: "o-17" },
    secret: "a secret that both sides know",
    retry: ["0s"],
  });
});

const worker = await book.startWorker();
await worker.idle();

const call = await book.calls.get(id, { reveal: true });
console.log(`${call.status} after ${call.attempts.length} attempts: ${call.attempts.at(-1)?.response?.said?.body}`);
receiver.close();
