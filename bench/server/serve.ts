// A server in a process of its own: ours on a book, or a bare one whose handlers do nothing.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Hono } from "hono";
import { serve } from "@hono/node-server";
import { job, open } from "../../src/index.ts";
import { createApp } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";

const [kind = "bare", url = ""] = process.argv.slice(2);

if (kind === "bare") {
  const app = new Hono();
  app.post("/api/v1/jobs", (context) => context.json({ id: "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e" }));
  app.get("/api/v1/jobs/:id", (context) => context.json({ id: context.req.param("id") }));
  serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
    process.send?.({ port, token: "", id: "x" }),
  );
} else {
  const sendReceipt = job("send-receipt", { run: (_params: { orderId: string }) => undefined });
  const book = await open(url, { use: [sendReceipt] });
  const app = createApp(book);
  const { secret: token } = await book.tokens.create({ role: "operate", tenant: "default" });
  const { id } = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on("message", () => {
    process.send?.({ heldMs: delay.percentile(99) / 1e6, mostMs: delay.max / 1e6 });
    delay.reset();
  });
  const listening = await listen(app, { port: 0 });
  process.send?.({ port: Number(new URL(listening.url).port), token, id });
}
