// Every page, against a server with a day of history.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { openDemo } from "../support/open-dashboard.ts";

const dashboard = openDemo();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const pages: readonly (readonly [path: string, heading: string])[] = [
  ["/", "Overview"],
  ["/jobs", "Jobs"],
  ["/queues", "Queues"],
  ["/queues/mail", "mail"],
  ["/groups", "Groups"],
  ["/templates", "Templates"],
  ["/schedules", "Schedules"],
  ["/schedules/nightly-report", "nightly-report"],
  ["/events", "Events"],
  ["/listeners", "Listeners"],
  ["/listeners/print-label", "print-label"],
  ["/apps", "Apps"],
  ["/apps/lights", "lights"],
  ["/dead-letters", "Dead letters"],
  ["/calls", "Calls"],
  ["/sinks", "Sinks"],
  ["/records", "Records"],
  ["/records/order", "order"],
  ["/records/order/o-17", "o-17"],
  ["/commits", "Commits"],
  ["/commits/2", "Commit 2"],
  ["/runs", "Runs"],
  ["/sessions", "Sessions"],
  ["/settings", "Settings and data"],
  ["/settings?tab=retention", "Settings and data"],
  ["/settings?tab=tokens", "Settings and data"],
];

for (const [path, heading] of pages) {
  test(`${path} shows what it is about, without a complaint of the browser, and can be used by everybody, light and dark`, async () => {
    const opened = await dashboard()?.open(path, { bypassCSP: true });
    if (opened === undefined) return;
    const { page, context, complaints } = opened;
    await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
    await settled(page);

    assert.deepEqual(complaints, []);
    assert.deepEqual(await page.locator(".failure").allTextContents(), []);
    await page.evaluate(axe);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await page.evaluate(violations), [], colorScheme);
    }
    await context.close();
  });
}

const violations = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) =>
  id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")))`;

async function settled(page: Page): Promise<void> {
  await page.waitForFunction("document.querySelector('.skeleton, [aria-busy=true]') === null");
}
