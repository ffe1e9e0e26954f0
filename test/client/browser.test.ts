// The client in a real browser, on a page that the same origin serves, where Chromium is installed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { getRequestListener } from "@hono/node-server";
import { job } from "../../src/index.ts";
import { openServer } from "../support/open-server.ts";
import { cleanup, testFolder } from "../support/open-test.ts";
import { find, writeClient } from "./client-files.ts";

const sendReceipt = job("send-receipt", { run: ({ orderId }: { orderId: string }) => ({ sentFor: orderId }) });

const page = `<!doctype html><script type="module">
import { connect } from "/src/client/connect.js";
const told = {};
try {
  const book = connect(location.origin, { token: "TOKEN", attempts: 2, backoffMs: 5 });
  const refused = ({ code }) => code;
  const made = await book.jobs.enqueue("send-receipt", { orderId: "o-17" });
  told.result = await made.result({ timeout: "60s" });
  told.jobs = [];
  for await (const { status } of book.jobs.list({ limit: 1 })) told.jobs.push(status);
  for await (const { name } of book.stream({ topics: ["run.ended"], after: "j0.r0.e0.d0.c0" })) {
    told.fact = name;
    break;
  }
  told.missing = await book.jobs.show("nobody").catch(refused);
  told.moved = await connect(location.origin + "/moved").jobs.cancel("an-id").catch(refused);
  told.unknown = await connect(location.origin).jobs.list().catch(refused);
} catch (error) {
  told.error = String(error);
}
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>`;

test("the client runs in Chromium, where it is installed", async (t) => {
  const chromium = find("chromium");
  if (chromium === undefined) return t.diagnostic("chromium is not on this machine, so nothing was run in it");
  const { app, book, tokens } = await openServer(t, "sqlite", { use: [sendReceipt] });
  const worker = await book.startWorker();
  const folder = testFolder(t);
  writeClient(folder);
  const told = Promise.withResolvers<string>();
  const answer = getRequestListener((request) => app.fetch(request));
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const { url = "" } = request;
    if (url === "/") response.setHeader("content-type", "text/html").end(page.replace("TOKEN", tokens.operate));
    else if (url === "/told") text(request).then(told.resolve, told.reject);
    else if (url.startsWith("/moved/")) response.writeHead(308, { location: "/" }).end();
    else if (url.startsWith("/src/"))
      response.setHeader("content-type", "text/javascript").end(readFileSync(join(folder, url)));
    else void answer(request, response);
  };
  const server = createServer(serve).listen(0, "127.0.0.1");
  await once(server, "listening");

  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const quiet = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${join(folder, "browser")}`];
  const browser = spawn(chromium, [...quiet, address], { stdio: "ignore" });
  const gone = once(browser, "exit");
  cleanup(t, async () => {
    browser.kill();
    await gone;
    // Its helpers end a moment after it, and may still write there.
    rmSync(join(folder, "browser"), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    server.closeAllConnections();
    server.close();
    await worker.stop();
  });

  assert.deepEqual(JSON.parse(await Promise.race([told.promise, gone.then(() => '"chromium ended first"')])), {
    result: { sentFor: "o-17" },
    jobs: ["completed"],
    fact: "run.ended",
    missing: "not_found",
    moved: "unavailable",
    unknown: "unauthorized",
  });
});
