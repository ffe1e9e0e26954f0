// Money: a card is charged once, and a refund is tried for as long as the bank is closed. `finish` makes the effects and the end of
// a job one commit.
import { giveUp, job } from "daybook";
import { z } from "zod";
import { between, chance, pick } from "./chance.ts";
import { sendReceipt } from "./mail.ts";
import { Order, OrderPaid } from "./records.ts";
import { takes } from "./world.ts";

const ofOrder = z.object({ orderId: z.string() });

export const chargeCard = job("charge-card", {
  params: ofOrder,
  queue: "payments",
  priority: 10,
  attempts: 4,
  backoff: ["20s", "2m", "10m"],
  timeout: "30s",
  async run({ orderId }, { attempt, book, finish, log, signal }) {
    const { cents, customer } = await book.records.get(Order, orderId);
    log(`charging ${customer}`, { cents });
    await takes(between(240, 1600, "charge", orderId, attempt), signal);
    const luck = orderId === "o-17" ? 0.5 : chance("card", orderId, attempt);
    if (luck < 0.03 && attempt === 1) {
      await book.records.patch(
        Order,
        orderId,
        { status: "declined" },
        { actor: "charge-card", reason: "card declined" },
      );
      throw giveUp("card_declined: insufficient_funds");
    }
    if (luck > 0.92) throw new Error(`POST payments.example/v1/charges: 504 Gateway Timeout`);
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "charge-card", reason: "the card was charged" });
      await tx.records.patch(Order, orderId, { status: "paid" });
      await tx.events.publish(OrderPaid, { orderId, cents }, { key: orderId });
      await tx.jobs.enqueue(sendReceipt, { orderId, to: `${customer}@example.org` });
      return { charged: cents };
    });
  },
});

/** The bank settles now and then and refuses refunds meanwhile, so this one has patience. */
export const refund = job("refund", {
  params: ofOrder.extend({ cents: z.number().int() }),
  queue: "payments",
  attempts: 6,
  backoff: ["30s", "2m", "10m", "30m", "1h"],
  // One refund of an order at a time.
  limit: { key: ({ orderId }) => orderId, concurrency: 1 },
  async run({ orderId, cents }, { attempt, attempts, finish, signal }) {
    await takes(between(600, 2600, "refund", orderId, attempt), signal);
    const isPatient = attempt >= 3 || chance("refund", orderId, attempt) < 0.4;
    if (!isPatient || chance("never", orderId) < 0.12) {
      throw new Error(
        pick(["the acquirer is settling: try again later", "429 from refunds.example"], orderId, attempt),
      );
    }
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "refund", reason: `refunded at attempt ${attempt} of ${attempts}` });
      await tx.records.patch(Order, orderId, { status: "refunded", refundedCents: cents });
    });
  },
});
