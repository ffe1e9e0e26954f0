// What people do on the day: they answer the phone, restart programs, pause what fails and look after what is left.
import type { Book } from "daybook";
import { placeOrder } from "./orders.ts";
import { refund } from "./payments.ts";
import { Order } from "./records.ts";
import { trainModel } from "./research.ts";
import { sendReceipt } from "./mail.ts";

/** `minutesAgo` is counted from the end of the history. `"restart"` is a new version of the shop, `"crash"` the end of another program. */
type Moment = { readonly minutesAgo: number; readonly act: "restart" | "crash" | ((book: Book) => Promise<unknown>) };

export const story: readonly Moment[] = [
  // The first order of the day is o-17, and it has a life of its own.
  { minutesAgo: 24 * 60 - 1, act: (book) => book.write(placeOrder) },
  {
    minutesAgo: 17 * 60,
    act: (book) => tellOf17(book, "grace (support)", "ada called", { note: "leave it with the neighbour" }),
  },
  { minutesAgo: 15 * 60 + 20, act: "restart" },
  { minutesAgo: 9 * 60 + 10, act: "crash" },
  {
    minutesAgo: 8 * 60,
    act: (book) => book.schedules.pause("import-suppliers", "line 1417 again: the supplier mends the file"),
  },
  { minutesAgo: 6 * 60, act: (book) => book.queues.pause("mail", "the mail server gets a new certificate") },
  { minutesAgo: 5 * 60 + 35, act: (book) => book.queues.resume("mail") },
  {
    minutesAgo: 5 * 60,
    act: (book) => book.jobs.enqueue(refund, { orderId: "o-17", cents: 1400 }, { tags: ["customer:ada"] }),
  },
  { minutesAgo: 2 * 60 + 45, act: "restart" },
  {
    minutesAgo: 2 * 60,
    act: (book) =>
      tellOf17(book, "linus (support)", "only the mug came back", { status: "shipped", note: "mug refunded" }),
  },
  { minutesAgo: 80, act: discardOne },
  { minutesAgo: 45, act: (book) => book.schedules.trigger("hourly-sales") },
  // What waits now: for a machine that is busy, for another job with its key, and for its time.
  { minutesAgo: 30, act: learn },
  { minutesAgo: 12, act: remind },
];

async function tellOf17(
  book: Book,
  actor: string,
  reason: string,
  fields: { note: string; status?: "shipped" },
): Promise<void> {
  await book.records.patch(Order, "o-17", fields, { actor, reason });
}

async function discardOne(book: Book): Promise<void> {
  const { items } = await book.deadLetters.list({ listener: "print-label" });
  const [oldest] = items.slice(-1);
  if (oldest !== undefined) await book.deadLetters.discard(oldest.id, "the customer fetched it");
}

async function learn(book: Book): Promise<void> {
  await book.jobs.enqueueFrom("overnight-training", {});
  await book.jobs.enqueueFrom("overnight-training", { epochs: 40 });
  await book.jobs.enqueue(trainModel, { dataset: "reviews", epochs: 90 }, { priority: 5 });
}

async function remind(book: Book): Promise<void> {
  await book.jobs.enqueue(sendReceipt, { orderId: "o-17", to: "ada@example.org" }, { in: "2h", tags: ["reminder"] });
  await book.jobs.enqueue("report", {}, { in: "3d", tags: ["quarter"] });
}
