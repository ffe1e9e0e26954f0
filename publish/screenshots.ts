// `npm run screenshots`: every page of the dashboard with the demo's day, light, dark and as a phone shows it, into docs/images/.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { makeHistory } from "../examples/demo/history.ts";
import { open, type Book } from "../src/index.ts";
import { createApp } from "../src/server/app.ts";
import { listen } from "../src/server/listen.ts";

const images = join(import.meta.dirname, "../docs/images");
const folder = mkdtempSync(join(tmpdir(), "daybook-screenshots-"));
const url = join(folder, "demo.db");
await makeHistory(url);
const book = await open(url);
const app = createApp(book);
const listening = await listen(app, { port: 0 });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

const looks = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 860 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 800 } },
] as const;

try {
  mkdirSync(images, { recursive: true });
  const pages = await pagesOf(book);
  for (const { name, ...options } of looks) {
    const context = await browser.newContext({ ...options, bypassCSP: true });
    const page = await context.newPage();
    await page.goto(`${listening.url}/login/${await app.link()}`);
    for (const [title, path] of Object.entries(pages)) await take(page, path, `${title}-${name}.png`);
    await context.close();
  }
} finally {
  await browser.close();
  await listening.close(100);
  await book.close();
  rmSync(folder, { recursive: true, force: true });
}

async function take(page: Page, path: string, file: string): Promise<void> {
  await page.goto(listening.url + path);
  await page.waitForFunction("document.querySelector('h1') && !document.querySelector('.skeleton, [aria-busy=true]')");
  // What is drawn after the data: charts.
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(images, file) });
}

async function pagesOf({ jobs, events, calls }: Book): Promise<Readonly<Record<string, string>>> {
  const failed = (await jobs.list({ status: ["failed"], retried: false, limit: 1 })).items[0];
  const said = (await events.list({ topic: "order.paid", limit: 1 })).items[0];
  const call = (await calls.list({ status: ["failed"], limit: 1 })).items[0];
  return {
    overview: "/",
    jobs: "/jobs",
    job: `/jobs/${failed?.id}`,
    queues: "/queues",
    queue: "/queues/mail",
    groups: "/groups",
    schedules: "/schedules",
    schedule: "/schedules/hourly-sales",
    events: "/events",
    event: `/events/${said?.id}`,
    listeners: "/listeners",
    app: "/apps/lights",
    "dead-letters": "/dead-letters",
    calls: "/calls",
    call: `/calls/${call?.id}`,
    sinks: "/sinks",
    records: "/records",
    type: "/records/order",
    record: "/records/order/o-17",
    commits: "/commits",
    runs: "/runs",
    sessions: "/sessions",
    settings: "/settings",
  };
}
