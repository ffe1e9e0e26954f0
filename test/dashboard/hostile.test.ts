// What others wrote is text on every page, whatever it says.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { z } from "zod";
import { entity, job, listener, type Book } from "../../src/index.ts";
import { openDashboard } from "../support/open-dashboard.ts";

const evil = [
  '<img src=x onerror="window.struck=1">',
  "</script><script>window.struck=1</script>",
  '"><svg onload=window.struck=1>',
  "javascript:window.struck=1",
  "{{constructor.constructor('window.struck=1')()}}",
  "\u202eevil\u2066\u001b[31mred\u001b[0m\u0007",
].join(" ");
const short = '<img src=x onerror="window.struck=1">\u202e';
const huge = `${evil}${"x".repeat(900_000)}`;
const wide = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`${evil.slice(0, 30)}${index}`, index]));

const Thing = entity("thing", { schema: z.looseObject({ id: z.string() }), key: "id" });
const fails = job(short, {
  attempts: 1,
  run: (_params, { log }) => {
    log(evil);
    throw Object.assign(new Error(`${evil} ${"y".repeat(20_000)}`), { name: short });
  },
});
const hears = listener("hears", { on: "evil.said", attempts: 1, run: () => Promise.reject(new Error(evil)) });

const dashboard = openDashboard({ book: { use: [Thing, fails, hears] } });

test("no script of names, params, errors, topics, records and filters runs, on any page that shows them", async () => {
  const shown = dashboard();
  if (shown === undefined) return;
  const { book } = shown;
  const ids = await fill(book);
  const { page, context, complaints } = await shown.open("/");
  const asked = encodeURIComponent(`name:"${short}" ${evil}`);
  const paths = [
    "/?since=7d",
    "/jobs",
    `/jobs?q=${asked}`,
    ...ids.map((id) => `/jobs/${id}`),
    "/queues",
    `/queues/${encodeURIComponent(short)}`,
    "/groups",
    "/templates",
    `/templates/${encodeURIComponent(short)}`,
    "/events",
    "/listeners",
    "/dead-letters",
    "/records",
    "/records/thing",
    `/records/thing/${encodeURIComponent(short)}`,
    "/commits",
    "/runs",
    "/sessions",
  ];

  for (const path of paths) {
    await page.goto(new URL(path, shown.url).href);
    await page.locator("h1").waitFor();
    await page.locator(".skeleton, [aria-busy=true]").first().waitFor({ state: "detached" });
    assert.deepEqual(await struck(page), { struck: false, images: 0, scripts: 0, overflows: false }, path);
  }
  // The tips of charts, too.
  await page.goto(shown.url);
  await page.locator(".chart-box").first().hover();

  assert.equal((await struck(page)).struck, false);
  assert.deepEqual(complaints, []);
  await context.close();
});

async function fill(book: Book): Promise<string[]> {
  const made: string[] = [];
  for (const params of [{ [short]: evil }, { text: huge }, wide]) {
    made.push((await book.jobs.enqueue(fails, params, { tags: [short], queue: short })).id);
  }
  await book.templates.create(short, { job: short, params: { [short]: evil } });
  await book.queues.pause("paused", evil.slice(0, 200));
  await book.records.put(Thing, { id: short, [short]: evil }, { reason: evil.slice(0, 200), actor: short });
  await book.events.publish("evil.said", { [short]: evil });
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
  made.push((await book.jobs.enqueue(fails, { a: evil }, { queue: short, key: short, in: "1h" })).id);
  return made;
}

type Struck = {
  readonly struck: boolean;
  readonly images: number;
  readonly scripts: number;
  readonly overflows: boolean;
};

/** By the page's own word, though its policy lets nobody evaluate a text. */
function struck(page: Page): Promise<Struck> {
  return page.evaluate(() => {
    const { document, struck: is } = globalThis as never as {
      readonly document: {
        querySelectorAll(which: string): { readonly length: number };
        readonly documentElement: { readonly scrollWidth: number; readonly clientWidth: number };
      };
      readonly struck?: number;
    };
    const { scrollWidth, clientWidth } = document.documentElement;
    return {
      struck: is !== undefined,
      images: document.querySelectorAll("main img, main svg[onload]").length,
      scripts: document.querySelectorAll("script:not([src])").length,
      overflows: scrollWidth > clientWidth,
    };
  });
}
