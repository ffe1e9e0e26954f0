// What the server does: an order that is paid is told to the stock, and its customer gets a receipt.
import { event, job, listener } from "daybook";
import { z } from "zod";

export const orderPaid = event("order.paid", { schema: z.object({ orderId: z.string(), customer: z.string() }) });

export const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string(), to: z.string() }),
  attempts: 5,
  timeout: "30s",
  run: ({ orderId, to }, { log }) => {
    log("a receipt is sent", { orderId, to });
    return { sent: true };
  },
});

// The job and the mark that the event was heard are one commit: a crash in between sends nothing twice.
export const tellStock = listener("tell-stock", {
  on: orderPaid,
  run: ({ orderId, customer }, { finish }) =>
    finish((tx) => tx.jobs.enqueue(sendReceipt, { orderId, to: customer }, { key: orderId })),
});
