// Receipts. Mail servers are busy at times, and some addresses are no more.
import { giveUp, job } from "daybook";
import { z } from "zod";
import { between, chance } from "./chance.ts";
import { takes } from "./world.ts";

export const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string(), to: z.string() }),
  queue: "mail",
  attempts: 3,
  backoff: ["15s", "1m"],
  timeout: "30s",
  async run({ orderId, to }, { attempt, log, signal }) {
    log(`a receipt for ${orderId} goes to ${to}`);
    await takes(between(80, 900, "mail", orderId, attempt), signal);
    const luck = chance("mail", orderId, attempt);
    if (luck < 0.02) throw giveUp(`550 5.1.1 <${to}>: mailbox unavailable`);
    if (luck > 0.92) throw new Error("421 4.7.0 too many connections from this host");
    return { messageId: `<${orderId}.${attempt}@shop.example>` };
  },
});
