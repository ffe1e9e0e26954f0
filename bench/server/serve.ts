// A server in a process of its own: ours on a book, or a bare one whose handlers do nothing.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Hono } from "hono";
import { serve } from "@hono/node-server";
import { job, open } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { createApp } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { watchLoop } from "../reads/held.ts";
import { fillRuns } from "../telemetry/fill.ts";
import type { Held, Served } from "./load.ts";

const [kind = "bare", url = "", runs = "0"] = process.argv.slice(2);

async function fill(): Promise<void> {
  const store = await openStore(url, migrations);
  await fillRuns(store, store.clock.now(), Number(runs));
  await foldRuns(store);
  await store.close();
}

function tell(said: Served | Held): void {
  process.send?.(said);
}

const delay = monitorEventLoopDelay({ resolution: 1 });
let loop = watchLoop();
let used = process.cpuUsage();
process.on("message", () => {
  const { user, system } = process.cpuUsage(used);
  const { workedMs } = loop.stop();
  tell({ heldMs: delay.percentile(99) / 1e6, mostMs: delay.max / 1e6, workedMs, usedMs: (user + system) / 1000 });
  delay.reset();
  loop = watchLoop();
  used = process.cpuUsage();
});
delay.enable();

if (kind === "bare") {
  const app = new Hono();
  app.post("/api/v1/jobs", (context) => context.json({ id: "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e" }));
  app.get("/api/v1/jobs/:id", (context) => context.json({ id: context.req.param("id") }));
  serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => tell({ port, token: "", id: "x" }));
} else {
  const sendReceipt = job("send-receipt", { run: (_params: { orderId: string }) => undefined });
  if (Number(runs) > 0) await fill();
  const book = await open(url, { use: [sendReceipt] });
  const { secret: token } = await book.tokens.create({ role: "operate", tenant: "default" });
  const { id } = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
  const listening = await listen(createApp(book), { port: 0 });
  tell({ port: Number(new URL(listening.url).port), token, id });
}
