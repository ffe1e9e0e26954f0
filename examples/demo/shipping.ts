// From a paid order to a label on a box. Each step hears the event of the one before, and says what it did in the commit of its end.
import { event, listener, sink, type Definition } from "daybook";
import { between, chance } from "./chance.ts";
import { Order, OrderPacked, OrderPaid } from "./records.ts";
import { takes, world } from "./world.ts";

/** The call and the acknowledgement of the event are one commit: a crash in between asks for nothing twice. */
export const orderStock = listener("order-stock", {
  on: OrderPaid,
  run: ({ orderId }, { finish }) =>
    finish(async (tx) => {
      await tx.calls.submit({
        name: "reserve-stock",
        url: `${world.api}/reserve`,
        headers: { authorization: "Bearer demo-stock-token" },
        json: { orderId },
        tags: ["stock", orderId],
        correlationId: orderId,
        retry: ["20s", "1m", "3m"],
      });
    }),
});

type CallEnded = { readonly name: string; readonly correlationId: string };
const CallSucceeded = event<CallEnded>("call.succeeded");
const CallFailed = event<CallEnded>("call.failed");

export const pack = listener("pack", {
  on: CallSucceeded,
  attempts: 5,
  async run({ name, correlationId: orderId }, { finish, signal }) {
    if (name !== "reserve-stock") return;
    await takes(between(900, 4200, "pack", orderId), signal);
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "pack", reason: "the stock has it" });
      await tx.records.patch(Order, orderId, { status: "packed" });
      await tx.events.publish(OrderPacked, { orderId, shelf: "B-7" }, { key: orderId });
    });
  },
});

export const hold = listener("hold", {
  on: CallFailed,
  async run({ name, correlationId: orderId }, { finish }) {
    if (name !== "reserve-stock") return;
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "hold", reason: "the stock did not answer" });
      await tx.records.patch(Order, orderId, { status: "on hold", note: "ask the stock again" });
    });
  },
});

/** It fails in several ways, and what it cannot do after three tries is a dead letter, for a person to look at. */
export const printLabel = listener("print-label", {
  on: OrderPacked,
  attempts: 3,
  backoff: ["5s", "30s"],
  async run({ orderId }, { attempt, book, finish, signal }) {
    await takes(between(300, 1500, "print", orderId, attempt), signal);
    const { shipTo } = await book.records.get(Order, orderId);
    if (orderId !== "o-17") mayFail(orderId, attempt, shipTo);
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "print-label", reason: "the box left the house" });
      await tx.records.patch(Order, orderId, { status: "shipped" });
    });
  },
});

function mayFail(orderId: string, attempt: number, shipTo: { city: string; postcode: string }): void {
  if (shipTo.postcode === "" && chance("postcode", orderId) < 0.4) {
    throw new Error(`the label was refused: "${shipTo.city}" has no postcode`);
  }
  if (chance("paper", orderId) < 0.03) throw new Error("out of paper in tray 2");
  if (chance("jam", orderId) < 0.02 || chance("print", orderId, attempt) < 0.06) {
    throw new Error("connect ECONNREFUSED 127.0.0.1:9100");
  }
}

/** Everything that happens to orders goes out to the warehouse, in the order of each. */
export function warehouse(): Definition {
  return sink("warehouse", {
    on: ["order.paid", "order.packed"],
    to: { webhook: { url: `${world.hooks}/warehouse`, secret: "a secret of both sides" } },
  });
}
