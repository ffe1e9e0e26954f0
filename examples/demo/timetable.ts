// What is due when: a schedule of each kind. Those of code are here; the rest is made in the book, by whoever looks after it.
import { event, job, listener, schedule, type Book, type Definition } from "daybook";
import { between, chance } from "./chance.ts";
import { Order } from "./records.ts";
import { takes, world } from "./world.ts";

const sumSales = job("sum-sales", {
  async run(_params: unknown, { book, signal }) {
    await takes(between(300, 1400, "sum", world.clock.now()), signal);
    const sold = book.records.query(Order).where((order) => order("status").in(["paid", "packed", "shipped"]));
    return sold.aggregate((order) => ({ orders: order.count(), cents: order("cents").sum() }));
  },
});

const report = job("report", {
  attempts: 3,
  backoff: ["1m", "10m"],
  async run(_params: unknown, { attempt, job: { schedule: slot }, log, progress, signal }) {
    for (const part of [1, 2, 3, 4]) {
      await takes(between(2000, 9000, "report", part), signal);
      if (part === 3 && attempt === 1)
        throw new Error("could not serialize access: the warehouse copy was being refreshed");
      progress(part / 4, `part ${part} of 4`);
    }
    log(`the report of ${slot?.name ?? "today"} is written`);
  },
});

const askPrices = job("ask-prices", {
  attempts: 1,
  run: (_params: unknown, { finish }) =>
    finish(async (tx) => {
      await tx.calls.submit({
        name: "price-list",
        url: `${world.api}/prices?currency=EUR`,
        tags: ["prices"],
        timeout: "5s",
      });
    }),
});

const importSuppliers = job("import-suppliers", {
  attempts: 2,
  backoff: ["1m"],
  async run(_params: unknown, { attempt, job: { createdAt }, signal }) {
    const minute = Math.floor(createdAt / 60_000);
    await takes(between(500, 4000, "suppliers", minute), signal);
    if (chance("suppliers", minute, attempt) < 0.6) throw new Error("suppliers.csv:1417: expected 9 columns, found 8");
  },
});

const countStock = job("count-stock", {
  run: async (_params: unknown, { signal }) => takes(between(20_000, 70_000, "count", world.clock.now()), signal),
});

const ShopOpened = event("shop.opened");
const greetTheTeam = listener("greet-the-team", { on: ShopOpened, run: (_opened, { log }) => log("good morning") });

const hourly = schedule("hourly-sales", { cron: "5 * * * *", job: sumSales, params: {} });
const nightly = schedule("nightly-report", { daily: "02:30", job: report, params: {} });
const prices = schedule("price-list", { every: "12m", jitter: "20s", job: askPrices, params: {} });
const stocktake = schedule("tokyo-stocktake", { cron: "0 9 * * *", zone: "Asia/Tokyo", job: countStock, params: {} });
const opening = schedule("shop-opens", { daily: "08:00", event: ShopOpened, payload: { doors: 2 } });

export const timetable: readonly Definition[] = [
  ...[sumSales, report, askPrices, importSuppliers, countStock, ShopOpened, greetTheTeam],
  ...[hourly, nightly, prices, stocktake, opening],
];

/** Schedules may be made at any time, too: by a program, over HTTP, or from the command line. */
export async function fillTheTimetable(book: Book): Promise<void> {
  await book.schedules.create("experiments", {
    every: "2h",
    anchor: world.clock.now() + 600_000,
    job: "plan-experiment",
  });
  await book.schedules.create("import-suppliers", { every: "30m", job: importSuppliers, pauseAfterFailures: 20 });
  await book.schedules.create("weekend-sale", { in: "3d", job: report, params: {}, tags: ["sale"] });
}
