// Three companies that share the book with the shop, each with its own jobs, events and records. None sees another's.
import { entity, event, job, listener, type Book, type Definition } from "daybook";
import { z } from "zod";
import { between, chance } from "./chance.ts";
import { takes, world } from "./world.ts";

const Invoice = entity("invoice", {
  schema: z.object({ id: z.string(), cents: z.number().int(), status: z.enum(["sent", "booked"]) }),
  key: "id",
  indexes: ["status"],
});

const InvoiceSent = event("invoice.sent", { schema: z.object({ id: z.string() }) });

const sendInvoice = job("send-invoice", {
  queue: "invoices",
  attempts: 3,
  backoff: ["30s", "3m"],
  async run(_params: unknown, { attempt, finish, job: { createdAt, tenant }, signal }) {
    const id = `${tenant.slice(0, 1).toUpperCase()}-${Math.floor(createdAt / 60_000) % 100_000}`;
    await takes(between(300, 2400, id, attempt), signal);
    // Initech has trouble with its printer.
    if (chance(id, attempt) < (tenant === "initech" ? 0.35 : 0.04)) throw new Error("PC LOAD LETTER");
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "send-invoice", reason: "the month is over" });
      await tx.records.put(Invoice, { id, cents: between(900, 90_000, "sum", id), status: "sent" });
      await tx.events.publish(InvoiceSent, { id }, { key: id });
    });
  },
});

const bookInvoice = listener("book-invoice", {
  on: InvoiceSent,
  tenants: "all",
  async run({ id }, { finish, signal }) {
    await takes(between(60, 400, "book", id), signal);
    await finish(async (tx) => {
      await tx.records.annotate({ actor: "book-invoice" });
      await tx.records.patch(Invoice, id, { status: "booked" });
      await tx.calls.submit({
        name: "tell the office",
        url: `${world.hooks}/invoices`,
        json: { id },
        retry: ["10s", "1m"],
      });
    });
  },
});

const digest = job("digest", {
  run: async (_params: unknown, { job: { tenant }, log, signal }) => {
    await takes(between(300, 900, "digest", tenant), signal);
    log(`the digest of ${tenant} is sent`);
  },
});

export const tenants: readonly Definition[] = [Invoice, InvoiceSent, sendInvoice, bookInvoice, digest];

/** How often each of them sends an invoice. */
const share = { acme: "20m", globex: "40m", initech: "75m" } as const;

export async function letTheTenantsIn(book: Book): Promise<void> {
  for (const [tenant, every] of Object.entries(share)) {
    const { schedules } = book.tenant(tenant);
    await schedules.create("invoices", { every, job: sendInvoice, params: {}, jitter: "30s" });
    await schedules.create("digest", { cron: "0 */4 * * *", job: digest, params: {} });
  }
}
