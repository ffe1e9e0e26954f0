import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer, origin } from "../support/open-server.ts";

const page = { accept: "text/html,application/xhtml+xml" };

test("every address that is nobody else's is the page of the dashboard, and nobody need say who they are", async (t) => {
  const { app } = await openServer(t, "sqlite");

  for (const path of ["/", "/jobs", "/jobs/01900000-0000-7000-8000-000000000000", "/records/order/o-17%2Fb"]) {
    const response = await app.fetch(new Request(origin + path, { headers: page }));
    assert.equal(response.status, 200, path);
    assert.match(await response.text(), /<base href="\/"/);
  }
});

test("what belongs to others stays theirs, also where it is not found", async (t) => {
  const { app } = await openServer(t, "sqlite");

  for (const path of ["/api/v1/nothing", "/health/nothing", "/mcp/x", "/assets/nothing.js", "/books/other/jobs"]) {
    const response = await app.fetch(new Request(origin + path, { headers: page }));
    assert.equal(response.status, 404, path);
    assert.match(response.headers.get("content-type") ?? "", /problem\+json/, path);
  }
  const asked = await app.fetch(new Request(`${origin}/jobs`, { headers: { accept: "application/json" } }));
  assert.equal(asked.status, 404);
});

test("the page runs scripts and styles of its own server alone, and nothing inline", async (t) => {
  const { app } = await openServer(t, "sqlite");

  const response = await app.fetch(new Request(`${origin}/`, { headers: page }));
  const policy = response.headers.get("content-security-policy") ?? "";

  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.doesNotMatch(await response.text(), /<script(?![^>]*\bsrc=)|<style|\bon\w+=/);
});

test("below a prefix the page finds its files there", async (t) => {
  const { app } = await openServer(t, "sqlite", { app: { prefix: "/ops" } });

  const response = await app.fetch(new Request(`${origin}/ops/queues`, { headers: page }));
  const html = await response.text();
  assert.match(html, /<base href="\/ops\/"/);
  const [, script = ""] = /<script[^>]* src="\.\/([^"]+)"/.exec(html) ?? [];
  const file = await app.fetch(new Request(`${origin}/ops/${script}`, { headers: { "accept-encoding": "gzip" } }));

  assert.equal(file.status, 200);
  assert.equal(file.headers.get("content-encoding"), "gzip");
  assert.match(file.headers.get("cache-control") ?? "", /immutable/);
});

test("what a browser loads first is at most 150 kB", async (t) => {
  const { app } = await openServer(t, "sqlite");
  const html = await (await app.fetch(new Request(`${origin}/`, { headers: page }))).text();
  const files = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path = ""]) => path);

  let bytes = html.length;
  for (const path of files) {
    const file = await app.fetch(new Request(`${origin}/${path}`, { headers: { "accept-encoding": "gzip" } }));
    bytes += (await file.arrayBuffer()).byteLength;
  }

  assert.ok(files.length >= 2, files.join());
  assert.ok(bytes <= 150_000, `${bytes} bytes`);
});
