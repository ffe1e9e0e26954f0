// What the pages of records, schedules and settings let a person do, and what they refuse.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDemo, type Opened } from "../support/open-dashboard.ts";

const dashboard = openDemo();

test("records show the fields of their schema, and a filter of them stands in the URL", async () => {
  await on("/records/order", async ({ page }) => {
    await page.getByRole("columnheader", { name: "customer" }).waitFor();
    const filter = page.getByRole("combobox", { name: "Filter order" });

    await filter.fill("status:ship");
    await page.getByRole("option", { name: "status:shipped" }).click();

    await page.waitForURL(/q=status%3Ashipped/);
    await page.locator("[data-row]").first().waitFor();
    await page.locator("[data-head=status]", { hasNotText: "shipped" }).first().waitFor({ state: "detached" });
  });
});

test("a whole type is shown as it was, and goes on to the next commit by a key", async () => {
  await on("/records/order?asOf=2", async ({ page }) => {
    const moment = page.getByRole("slider", { name: "Moment" });
    await moment.waitFor();
    assert.equal(await page.locator("[data-row]").count(), 1);

    await moment.focus();
    await page.keyboard.press("End");

    await page.waitForURL((url) => Number(url.searchParams.get("asOf")) > 100);
    await page.locator("[data-row]").nth(20).waitFor();
  });
});

test("the marks of a record's time are chosen by mouse, and any two versions are compared", async () => {
  await on("/records/order/o-17", async ({ page }) => {
    const slider = page.getByRole("slider", { name: "Version" });
    await slider.waitFor();

    await slider.click({ position: { x: 2, y: 17 } });
    await page.waitForURL(/at=2(?:&|$)/);
    await page.getByText("its first version").waitFor();
    await page.getByLabel("Compare with").selectOption({ index: 1 });

    await page.waitForURL(/with=\d+/);
    await page.getByRole("list", { name: "What differs" }).waitFor();
    assert.equal(await page.locator(".slider-track .compared").count(), 1);
  });
});

test("what is kept of a schedule's slots is walked by the arrow keys, and leaves only its own decisions", async () => {
  await on("/schedules/price-list", async ({ page }) => {
    const square = page.locator(".calendar button[tabindex='0']");
    await square.waitFor();
    const all = await page.locator("[data-row]").count();

    await square.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");

    await page.getByText(/^only those of /).waitFor();
    assert.ok((await page.locator("[data-row]").count()) < all);
  });
});

test("an edit of a schedule shows what it takes away and what it adds before it is saved", async () => {
  await required().book.schedules.create("by-clock", { daily: "07:00", zone: "Europe/Oslo", event: "by.clock" });
  await on("/schedules/by-clock", async ({ page }) => {
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByText("As it is: nothing differs").waitFor();

    await page.getByLabel("Time of day").fill("08:30");

    await page.getByRole("heading", { name: "As it would be" }).waitFor();
    assert.match((await page.locator(".preview del").first().textContent()) ?? "", / 07:00:00$/);
    assert.match((await page.locator(".preview ins").first().textContent()) ?? "", / 08:30:00$/);
  });
});

test("a token is shown once, and the list knows it from then on", async () => {
  await on("/settings?tab=tokens", async ({ page }) => {
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name", { exact: true }).fill("till");
    await page.getByRole("button", { name: "Make it" }).click();

    const secret = (await page.locator(".secret").textContent()) ?? "";
    assert.match(secret, /^dbk_/);
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("table", { name: "Tokens" }).getByText("till").waitFor();
    assert.ok(!(await page.content()).includes(secret));
  });
});

test("upkeep says what it would do, and is not done where there is nothing to do", async () => {
  await on("/settings?tab=upkeep", async ({ page }) => {
    const mend = page.getByRole("listitem").filter({ hasText: "Mend the clock's marks" });

    await mend.getByRole("button", { name: "Try", exact: true }).click();

    await mend.getByRole("status").waitFor();
    assert.equal(await mend.getByRole("button", { name: /^Mend it/ }).getAttribute("aria-disabled"), "true");
  });
});

test("a login of one tenant that may only read asks for nothing that it is refused", async () => {
  const opened = await dashboard()?.open("/");
  if (opened === undefined) return;
  const { page, context } = opened;
  const { secret } = await required().book.tokens.create({ role: "read", tenant: "default" });
  await context.clearCookies();
  await page.goto(required().url);
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".login").waitFor({ state: "detached" });
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
  });

  const tabs = ["data", "tokens", "retention", "backups", "doctor", "upkeep", "operations", "audit"];
  const paths = ["/schedules/price-list", "/records/order/o-17", "/sinks/warehouse", "/sessions", "/apps/lights"];
  for (const path of [...paths, ...tabs.map((tab) => `/settings?tab=${tab}`)]) {
    await page.goto(required().url + path);
    await page.locator("h1").waitFor();
    await page.locator(".skeleton, [aria-busy=true]").first().waitFor({ state: "detached" });
  }

  assert.deepEqual(refused, []);
  await context.close();
});

function required(): NonNullable<ReturnType<typeof dashboard>> {
  const found = dashboard();
  assert.ok(found !== undefined, "there is no browser");
  return found;
}

async function on(path: string, act: (opened: Opened) => Promise<void>): Promise<void> {
  const opened = await dashboard()?.open(path);
  if (opened === undefined) return;
  try {
    await act(opened);
    assert.deepEqual(opened.complaints, []);
  } finally {
    await opened.context.close();
  }
}
