// The dashboard in a real browser, against a real server with the demo's day of history.
import { execFile } from "node:child_process";
import { after, before } from "node:test";
import { promisify } from "node:util";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { open, type Book, type OpenOptions } from "../../src/index.ts";
import { createApp, type App, type AppOptions } from "../../src/server/app.ts";
import { listen, type Listening } from "../../src/server/listen.ts";
import { openBrowser } from "./open-browser.ts";

export type Dashboard = {
  readonly browser: Browser;
  readonly book: Book;
  readonly url: string;
  /** A page that is logged in as administrator of the book; what it says on its console that is wrong is kept. */
  open(path: string, options?: BrowserContextOptions): Promise<Opened>;
  /** Ends the server and starts it again at the same port. */
  restart(whileAway?: () => Promise<void>): Promise<void>;
};

export type Opened = { readonly page: Page; readonly context: BrowserContext; readonly complaints: readonly string[] };

export type DashboardOptions = {
  /** How busy the day was; without it the book is empty. */
  readonly scale?: number;
  readonly book?: OpenOptions;
  readonly app?: AppOptions;
};

let shared: (() => Dashboard | undefined) | undefined;

/** The one with a day of history, which all files of a process look at: to make a day takes seconds. */
export function openDemo(): () => Dashboard | undefined {
  return (shared ??= openDashboard({ scale: 0.4 }));
}

/** One for a whole file of tests. Undefined where there is no Chromium. */
export function openDashboard(options: DashboardOptions = {}): () => Dashboard | undefined {
  let dashboard: Dashboard | undefined;
  let end: (() => Promise<void>) | undefined;
  before(async () => {
    const browser = await openBrowser();
    if (browser === undefined) return;
    const folder = mkdtempSync(join(tmpdir(), "daybook-dashboard-"));
    const url = join(folder, "demo.db");
    if (options.scale !== undefined) await makeHistory(url, options.scale);
    const book = await open(url, { ...options.book });
    let served = await serve(book, options.app, 0);
    const { url: base } = served.listening;
    dashboard = {
      browser,
      book,
      url: base,
      async open(path, given = {}) {
        const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...given });
        const page = await context.newPage();
        const complaints = complaintsOf(page, base);
        await page.goto(`${base}/login/${await served.app.link()}`);
        await page.goto(base + path);
        return { page, context, complaints };
      },
      async restart(whileAway) {
        await served.listening.close(100);
        await whileAway?.();
        served = await serve(book, options.app, Number(new URL(base).port));
      },
    };
    end = async () => {
      await browser.close();
      await served.listening.close(100);
      await book.close();
      rmSync(folder, { recursive: true, force: true });
    };
  });
  after(() => end?.());
  return () => dashboard;
}

/** As a program of its own, because the demo imports "daybook" as a user does. */
async function makeHistory(url: string, scale: number): Promise<void> {
  const program = join(import.meta.dirname, "../../examples/demo/make-book.ts");
  const now = new Date().toISOString();
  await promisify(execFile)(process.execPath, ["--conditions=@daybook/source", program, url, now, "1", String(scale)]);
}

async function serve(
  book: Book,
  options: AppOptions | undefined,
  port: number,
): Promise<{ app: App; listening: Listening }> {
  const app = createApp(book, options);
  return { app, listening: await listen(app, { port }) };
}

/** Errors and warnings of the page, failed requests for it, and requests to anybody else. */
function complaintsOf(page: Page, base: string): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith("data:"))
      complaints.push(`asked ${request.url()}`);
  });
  return complaints;
}
