// What the compiler says of the commonest slips: where it points, and what it complains about there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkTypes, projectWith } from "./snippet.ts";

const given = `import { app, entity, event, job, listener, open, relation, schedule } from "daybook";
import { connect } from "daybook/client";
import { z } from "zod";

const pay = job("pay", {
  params: z.object({ orderId: z.string(), copies: z.number().optional() }),
  run: ({ orderId }) => orderId,
});
const tidyUp = job("tidy-up", { run: () => 1 });
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number() }), key: "id" });
const Customer = entity("customer", { schema: z.object({ id: z.string() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ how: z.string() }) });
await using book = await open(":memory:", { use: [pay, tidyUp, OrderPaid, Order, Customer, Placed] });
const over = connect("http://127.0.0.1:4600");
`;

const notText = "Type 'number' is not assignable to type 'string'.";
const notNumber = "Type 'string' is not assignable to type 'number'.";

/** Each is a mistake at the mark "«", and a part of what the compiler says of it. */
const slips: readonly (readonly [code: string, says: string])[] = [
  ["book.jobs.enqueue(pay, { «orderId: 17 })", notText],
  [`book.jobs.enqueue(pay, { «order: "o-17" })`, "'order' does not exist in type"],
  [`book.jobs.enqueue(pay, { orderId: "o-17", «copy: 1 })`, "'copy' does not exist in type"],
  ["book.jobs.enqueue(pay, «{})", "Property 'orderId' is missing"],
  ["book.jobs.«enqueue(pay)", "Expected 2-3 arguments, but got 1."],
  [`book.jobs.enqueue(pay, { orderId: "o-17" }, { «prio: 1 })`, "'prio' does not exist in type 'EnqueueOptions'."],
  [`book.jobs.enqueue("pay", { orderId: "o-17" }, { «prio: 1 })`, "'prio' does not exist in type 'EnqueueOptions'."],
  [`book.jobs.enqueue(«OrderPaid, { orderId: "o-17" })`, "is not assignable to parameter of type 'string | Job<"],
  [`book.jobs.enqueueMany(pay, [{ orderId: "o-17" }, { «orderId: 18 }])`, notText],
  ["book.jobs.runNow(pay, { «orderId: 17 })", notText],
  ["book.jobs.«runNow(pay)", "Expected 2-3 arguments, but got 1."],
  ["book.jobs.result({ «id: 17 })", notText],
  [`book.groups.create({ mode: "parallel" }, (group) => group.add(pay, { «orderId: 17 }))`, notText],
  [`book.groups.add("g-1", pay, { «orderId: 17 })`, notText],
  [`book.templates.create("t", { job: pay, params: { «copies: "2" } })`, notNumber],
  [`book.templates.create("t", { job: pay, params: { «copy: 2 } })`, "'copy' does not exist in type"],
  [`book.templates.create("t", { job: pay, «attempt: 2 })`, "Did you mean to write 'attempts'?"],
  [`book.templates.edit("t", { job: pay, params: { «copies: "2" } })`, notNumber],
  [`book.schedules.create("s", { daily: "07:00", job: pay, params: { «orderId: 17 } })`, notText],
  [`book.schedules.create("s", «{ daily: "07:00", job: pay })`, "Property 'params' is missing"],
  [`book.schedules.create("s", { daily: "07:00", event: OrderPaid, payload: { «orderId: 17 } })`, notText],
  [`schedule("s", { daily: "07:00", job: pay, params: { «orderId: 17 } })`, notText],
  [`schedule("s", { daily: "07:00", job: pay, params: { «order: "o" } })`, "Did you mean to write 'orderId'?"],
  [`schedule("s", { daily: "07:00", job: tidyUp, «zon: "Europe/Oslo" })`, "Did you mean to write 'zone'?"],
  ["book.events.publish(OrderPaid, { «orderId: 17 })", notText],
  [`book.events.publish(OrderPaid, { «order: "o-17" })`, "Did you mean to write 'orderId'?"],
  ["book.events.«publish(OrderPaid)", "Expected 2-3 arguments, but got 1."],
  ["book.events.emit(OrderPaid, { «orderId: 17 })", notText],
  ["book.events.«emit(OrderPaid)", "Expected 2 arguments, but got 1."],
  [`book.events.publish(«pay, { orderId: "o-17" })`, "is not assignable to parameter of type 'string | Event<"],
  [`book.records.put(Order, { id: "o-17", «total: "40" })`, notNumber],
  [`book.records.put(Order, { id: "o-17", «totl: 40 })`, "Did you mean to write 'total'?"],
  [`book.records.put(Order, «{ id: "o-17" })`, "Property 'total' is missing"],
  [`book.records.patch(Order, "o-17", { «totl: 40 })`, "Did you mean to write 'total'?"],
  [`book.records.link(Placed, { from: "c-1", to: "o-17" }, { «how: 1 })`, notText],
  [`job("j", { params: z.object({ n: z.number() }), run: ({ «m }) => m })`, "Property 'm' does not exist on type"],
  [`job("j", { params: z.object({ n: z.number() }), run: ({ n }) => n, «attempt: 3 })`, "'attempts'?"],
  [`job("j", { params: z.object({ n: z.number() }), run: ({ n }) => n, «timeout: true })`, "to type 'Duration'."],
  [`job("j", { run: (n: number) => n, «attempt: 3 })`, "'attempts'?"],
  [`listener("l", { on: OrderPaid, run: ({ «order }) => order })`, "Property 'order' does not exist on type"],
  [`listener("l", { on: OrderPaid, «attempt: 3, run: ({ orderId }) => orderId })`, "'attempts'?"],
  [`listener("l", { on: OrderPaid, live: true, «throtle: "1m", run: ({ orderId }) => orderId })`, "'throttle'?"],
  [`app("a", { config: z.object({ room: z.string() }), instances: [{ «room: 1 }], setup() {} })`, notText],
  [`app("a", { «instance: [{ room: 1 }], setup() {} })`, "Did you mean to write 'instances'?"],
  ["over.jobs.enqueue(pay, { «orderId: 17 })", notText],
  [`over.jobs.enqueue(pay, { «order: "o-17" })`, "'order' does not exist in type"],
  ["over.jobs.enqueue(pay, «{})", "Property 'orderId' is missing"],
  ["over.jobs.«enqueue(pay)", "Expected 2-3 arguments, but got 1."],
  [`over.jobs.enqueue(pay, { orderId: "o-17" }, { «prio: 1 })`, "'prio' does not exist in type"],
  [`over.jobs.enqueue(«OrderPaid, { orderId: "o-17" })`, "is not assignable to parameter of type 'string | AnyJob'"],
  [`over.jobs.enqueue<typeof pay>("pay", { «orderId: 17 })`, notText],
  [`over.jobs.enqueue<typeof pay>("pay", { orderId: "o-17" }, { «prio: 1 })`, "'prio' does not exist in type"],
  [`over.jobs.list({ status: [«"asleep"] })`, "is not assignable to type"],
  [`over.jobs.list({ «stat: ["failed"] })`, "'stat' does not exist in type"],
  ["over.jobs.«cancel()", "Expected 1-3 arguments, but got 0."],
  [`over.jobs.move("id", { «befor: "other" })`, "'befor' does not exist in type"],
  ["over.events.publish(OrderPaid, { «orderId: 17 })", notText],
  ["over.events.«publish(OrderPaid)", "Expected 2-3 arguments, but got 1."],
  [`over.records.put(Order, { id: "o-17", «total: "40" })`, notNumber],
  [`over.«backup("b.db")`, "Did you mean 'backups'?"],
  [`over.stream({ «topic: ["run.ended"] })`, "Did you mean to write 'topics'?"],
  [`connect("http://127.0.0.1:4600", { «tokn: "dbk_1" })`, "Did you mean to write 'token'?"],
  ["open(':memory:', { «uses: [pay] })", "Did you mean to write 'use'?"],
];

/** What compiles: a name in place of a definition takes any params, and its result is unknown. */
const fine = `
book.jobs.enqueue("pay", { orderId: 17 }).then((made) => made.id);
book.jobs.enqueue("pay");
book.jobs.enqueue(tidyUp).then((made) => made.result()).then((one) => one.toFixed());
book.events.emit("motion.hall");
book.templates.create("t", { job: "pay", params: { any: 1 } });
schedule("s", { cron: "0 7 * * *", template: "t", params: { any: 1 } });
listener("l", { on: "n.*", live: true, run: (n: number) => n }).describe();
over.jobs.enqueue(tidyUp).then((made) => made.result()).then((one) => one.toFixed());
over.jobs.enqueue("pay", { any: 17 }).then((made) => made.result()).then((one: unknown) => one);
over.jobs.enqueue<typeof pay>("pay", { orderId: "o-17" }).then((made) => made.result()).then((one) => one.trim());
over.events.publish("motion.hall");
`;

test("the compiler points at the field that is wrong, and speaks of that field", async (t) => {
  const program = `${given}${fine}export const slips = () => [\n${slips.map(([code]) => `  ${code.replace("«", "")},\n`).join("")}];\n`;
  const folder = projectWith(t, { "slips.ts": program });

  const { stdout } = await checkTypes(folder);

  const first = readFileSync(`${folder}/slips.ts`, "utf8").split("\n").indexOf("export const slips = () => [") + 2;
  const said = stdout.split(/\n(?=\S)/).map((text) => {
    const [, line = "", column = ""] = /^slips\.ts\((\d+),(\d+)\): /.exec(text) ?? [];
    return { line: Number(line), column: Number(column), text };
  });
  for (const [index, [code, says]] of slips.entries()) {
    const here = said.filter(({ line }) => line === first + index);
    const [only] = here;
    assert.ok(only !== undefined && here.length === 1, `${code}\n${here.map(({ text }) => text).join("\n")}`);
    assert.equal(only.column, code.indexOf("«") + 3, `${code}\n${only.text}`);
    assert.ok(only.text.includes(says), `${code}\n${only.text}`);
  }
  assert.equal(said.length, slips.length, stdout);
});
