// What a person does on the pages, and what the book makes of it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openDemo, type Opened } from "../support/open-dashboard.ts";

const dashboard = openDemo();
const receipt = { orderId: "o-17", to: "ada@example.org" };

test("a filter is suggested, stands in the URL, and goes by the way back", async (t) => {
  await on(t, "/jobs", async ({ page }) => {
    const filter = page.getByRole("combobox", { name: "Filter jobs" });

    await filter.fill("sta");
    await page.getByRole("option", { name: "status:" }).first().click();
    await filter.pressSequentially("fail");
    await page.getByRole("option", { name: "status:failed" }).click();

    await page.waitForURL(/q=status%3Afailed/);
    await page.locator("[data-row]").first().waitFor();
    const states = await page.locator("[data-head=State]").allTextContents();
    assert.ok(states.length > 0 && states.every((text) => text.startsWith("failed")), states.join());
    await page.getByRole("button", { name: "running", exact: true }).click();
    await page.waitForURL(/status%3Arunning/);
    await page.goBack();
    await page.waitForURL(/status%3Afailed/);
    await page.getByRole("button", { name: "failed", exact: true, pressed: true }).waitFor();
  });
});

test("a failed job is found and tried again by the keyboard alone", async (t) => {
  await on(t, "/jobs?q=status:failed%20retried:no", async ({ page }) => {
    await page.locator("[data-row]").first().waitFor();
    await page.locator("h1").click();

    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/jobs\/[0-9a-f-]{36}/);
    const before = page.url();
    await page.getByRole("button", { name: "Retry" }).waitFor();
    await page.keyboard.press("r");

    await page.waitForURL((url) => url.href !== before && /\/jobs\/[0-9a-f-]{36}/.test(url.pathname));
    await page
      .getByText(/Retry, attempt \d/)
      .first()
      .waitFor();
  });
});

test("all that match a filter are counted, asked about and cancelled", async (t) => {
  const { book } = required();
  await book.queues.pause("crowd");
  for (let many = 0; many < 12; many++) await book.jobs.enqueue("send-receipt", receipt, { queue: "crowd" });

  await on(t, "/jobs?q=queue:crowd", async ({ page }) => {
    await page.getByRole("button", { name: "Cancel all that match" }).click();
    await page.getByText("12 jobs match").waitFor();
    await page.getByRole("button", { name: "Cancel 12 jobs" }).click();

    await page.getByText("Cancel: 12 jobs").waitFor();
    const left = await book.jobs.list({ queue: "crowd", status: ["queued", "waiting"] });
    assert.deepEqual(left.items, []);
  });
});

test("a job in line is moved to the front, and a queue is paused with a note", async (t) => {
  const { book } = required();
  await book.queues.pause("line");
  for (const tag of ["a", "b", "c"]) await book.jobs.enqueue("send-receipt", receipt, { queue: "line", tags: [tag] });

  await on(t, "/queues/line", async ({ page }) => {
    const last = page.locator("[data-row]").nth(2);
    const id = await last.getAttribute("data-row");
    await last.getByRole("button", { name: "Move to the front" }).click();
    await page.locator(`[data-row]:nth-child(1)[data-row="${id}"]`).waitFor();

    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Why, for those who look at it later").fill("the printer is mended");
    await page.getByRole("button", { name: "Pause", exact: true }).last().click();
    await page.getByText("the printer is mended").waitFor();
    const queues = await book.queues.list();
    assert.equal(queues.find(({ queue }) => queue === "line")?.paused?.note, "the printer is mended");
  });
});

test("dead letters of one error are redriven together", async (t) => {
  await on(t, "/dead-letters", async ({ page }) => {
    const [group] = await required().book.deadLetters.groups();
    assert.ok(group !== undefined);

    await page
      .getByRole("row")
      .filter({ hasText: group.error.message })
      .first()
      .getByRole("button", { name: "Redrive" })
      .click();
    await page.getByRole("button", { name: new RegExp(`^Redrive ${group.count} letter`) }).click();

    await page.getByText(/redriven$/).waitFor();
  });
});

test("a schedule is previewed while it is typed, saved, and says why it fires", async (t) => {
  await on(t, "/schedules", async ({ page }) => {
    await page.getByRole("button", { name: "New schedule" }).click();
    await page.getByLabel("Name", { exact: true }).first().fill("by-hand");
    await page.getByLabel("Expression").fill("99 7 * * *");
    await page.locator(".field-problem").waitFor();
    await page.getByLabel("Expression").fill("0 7 * * 1");
    await page.locator(".preview li").nth(4).waitFor();
    await page.getByLabel("Makes").selectOption("event");
    await page.getByLabel("Topic").fill("week.began");
    await page.getByRole("button", { name: "Save" }).click();

    await page.getByText("by-hand is saved").waitFor();
    assert.equal((await required().book.schedules.get("by-hand"))?.expression, "0 7 * * 1");
  });
});

test("the slider goes through the time of a record, and says what changed", async (t) => {
  await on(t, "/records/order/o-17", async ({ page }) => {
    const slider = page.getByRole("slider", { name: "Version" });
    await slider.waitFor();
    const now = await page.locator(".json").first().textContent();

    await slider.focus();
    await page.keyboard.press("ArrowLeft");
    await page.waitForURL(/at=\d+/);
    await page.getByText(/^As it was from/).waitFor();

    assert.notEqual(await page.locator(".json").first().textContent(), now);
    await page.getByRole("list", { name: "What differs" }).waitFor();
  });
});

test("an event is published by hand, and its page shows who heard it", async (t) => {
  await on(t, "/events", async ({ page }) => {
    await page.getByRole("button", { name: "Publish" }).click();
    await page.getByLabel("Topic").fill("by.hand");
    await page.getByLabel("Payload as JSON").fill('{ "n": 12345678901234567890');
    await page.locator(".field-problem").waitFor();
    await page.getByLabel("Payload as JSON").fill('{ "n": 1 }');
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();

    await page.getByText(/by\.hand is said/).waitFor();
  });
});

test("the palette goes to a page, and to a job by its id", async (t) => {
  const { items } = await required().book.jobs.list({ limit: 1 });
  await on(t, "/", async ({ page }) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dead");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dead-letters/);

    await page.keyboard.press("Control+k");
    await page.keyboard.type(items[0]?.id ?? "");
    await page.locator("#palette-list [role=option]").first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/jobs/${items[0]?.id}`));
  });
});

test("who may only read sees why the rest is out of reach", async () => {
  const opened = await dashboard()?.open("/");
  if (opened === undefined) return;
  const { page, context } = opened;
  const { secret } = await required().book.tokens.create({ role: "read", tenant: "default" });

  await page.getByRole("button", { name: /^Time zone, theme/ }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").fill("dbk_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".login").waitFor({ state: "detached" });
  await page.goto(`${required().url}/jobs`);

  const enqueue = page.getByRole("button", { name: /Enqueue/ });
  assert.equal(await enqueue.getAttribute("aria-disabled"), "true");
  assert.match((await enqueue.getAttribute("title")) ?? "", /Needs the role operate/);
  await context.close();
});

test("what is typed stays while the server goes away and comes back, and the page says so", async (t) => {
  await on(t, "/jobs", async ({ page }) => {
    await page.getByRole("button", { name: "Enqueue" }).click();
    await page.getByLabel("Name", { exact: true }).fill("send-receipt");

    await required().restart(async () => {
      await page.getByText("Reconnecting").waitFor();
    });
    await page.getByText("Live", { exact: true }).waitFor();

    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "send-receipt");
  });
});

function required(): NonNullable<ReturnType<typeof dashboard>> {
  const found = dashboard();
  assert.ok(found !== undefined, "there is no browser");
  return found;
}

async function on(_t: TestContext, path: string, act: (opened: Opened) => Promise<void>): Promise<void> {
  const opened = await dashboard()?.open(path);
  if (opened === undefined) return;
  try {
    await act(opened);
    assert.deepEqual(
      opened.complaints.filter((each) => !/ERR_CONNECTION_REFUSED|status of (?:401|4\d\d)/.test(each)),
      [],
    );
  } finally {
    await opened.context.close();
  }
}
