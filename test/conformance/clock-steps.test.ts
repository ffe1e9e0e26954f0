// A wall clock that is wrong for a moment × everything that goes by time: what is asked for after the clock is right again is right
// at once, in the process that saw it and on disk, and what was written in the wrong moment is put right. Each cell of the table
// below is a verb under one step, and says "right" or what is wrong.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { limits } from "../../src/core/limits.ts";
import { entity, isDaybookError, job, listener, manualClock, type Book, type ManualClock } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { readSession, until } from "../support/session-row.ts";

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const year = 365 * day;

const steps: Readonly<Record<string, number>> = {
  "1 ms ahead": 1,
  "1 ms back": -1,
  "400 ms back": -400,
  "1 h ahead": hour,
  "1 h back": -hour,
  "1 d ahead": day,
  "1 y ahead": year,
  "1 y back": -year,
};

const Note = entity("note", { schema: z.object({ id: z.string(), text: z.string() }), key: "id" });
const noop = job("noop", { run: () => undefined });
const fails = job("fails", {
  attempts: 5,
  backoff: ["10m"],
  run: () => {
    throw new Error("no");
  },
});
const rated = job("rated", { rate: { max: 2, per: "1m" }, run: () => undefined });
const heard = listener("heard", { on: "said", run: () => undefined });

type World = { readonly book: Book; readonly clock: ManualClock; readonly url: string };

/** What one moment asks for, by every verb that goes by time. */
async function askForAll({ book, url }: World, moment: string) {
  const delayed = await book.jobs.enqueue(noop, {}, { in: "10m" });
  const failing = await book.jobs.enqueue(fails, {}, { tags: [moment] });
  await book.jobs.enqueueMany(rated, [{}, {}, {}], { tags: [moment] });
  await book.jobs.enqueueMany(noop, [{}, {}, {}], { queue: "narrow", tags: [moment] });
  const window = { key: `window ${moment}`, keyScope: { window: "10m" } } as const;
  await book.jobs.enqueue(noop, {}, window);
  const event = await book.events.publish("said", { moment }, { in: "10m" });
  // The clock runs far ahead of the server, so it may take its time.
  const call = await book.calls.submit({ url: `${url}/${moment}`, in: "10m", timeout: "10m" });
  const once = `once ${moment}`;
  await book.schedules.create(once, { in: "10m", job: noop, params: {} });
  const reservation = await book.reservations.reserve(`held ${moment}`, { expires: "1h" });
  await book.records.put(Note, { id: "n", text: moment });
  const commit = await book.records.head();
  return { moment, delayed, failing, window, event, call, once, reservation, commit: commit ?? 0 };
}

type Asked = Awaited<ReturnType<typeof askForAll>>;

async function dueOf(book: Book, id: string): Promise<number> {
  return (await book.jobs.get(id)).availableAt;
}

async function retryOf(book: Book, id: string): Promise<number> {
  const [retry] = await book.read(
    (tx) => tx.sql<{ due: number }>`select line.available_at as due from daybook_job parent
      join daybook_job child on child.retry_of = parent.seq join daybook_line line on line.seq = child.seq
      where parent.id = ${id}`,
  );
  return Number(retry?.due);
}

async function deliveryOf(book: Book, id: string): Promise<number> {
  const [delivery] = await book.read(
    (tx) => tx.sql<{ due: number }>`select line.available_at as due from daybook_event event
      join daybook_line line on line.kind = 'delivery' and line.kind_seq = event.seq where event.id = ${id}`,
  );
  return Number(delivery?.due);
}

/** Times at which something is due that was to wait so long. */
async function dueTimes({ book }: World, asked: Asked): Promise<Record<string, { due: number; waits: number }>> {
  const expires = (await book.reservations.list()).find(({ id }) => id === asked.reservation.id)?.expiresAt;
  return {
    "enqueue in": { due: await dueOf(book, asked.delayed.id), waits: 10 * minute },
    "retry backoff": { due: await retryOf(book, asked.failing.id), waits: 10 * minute },
    "listener delay": { due: await deliveryOf(book, asked.event.id), waits: 10 * minute },
    "call due": { due: (await book.calls.get(asked.call.id)).dueAt, waits: 10 * minute },
    "schedule once": { due: (await book.schedules.get(asked.once)).nextAt ?? 0, waits: 10 * minute },
    reservation: { due: expires ?? 0, waits: hour },
  };
}

/** Which starts of the tag there were. */
async function startsOf({ book }: World, name: string, queue: string, tag: string): Promise<number> {
  const { items } = await book.jobs.list({ name, queue, tag, limit: 100 });
  return items.filter(({ status }) => status === "completed").length;
}

/** Lets time pass no faster than the server can write beats and decide slots. */
async function pass({ book, clock }: World, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5 * second) {
    await clock.advance(5 * second);
    await book.write(() => undefined);
    await roomsOf(book).ticker?.tick();
  }
}

for (const backend of backends) {
  for (const [step, ms] of Object.entries(steps)) {
    test(`${backend}: a clock that is ${step} for 300 ms leaves nothing wrong`, async (t) => {
      assert.deepEqual(await liveThrough(t, backend, { ms, forMs: 300, expected: right }), right);
    });
  }
  // A clock that was set back is believed after some seconds.
  for (const step of ["1 h ahead", "1 h back", "1 y ahead", "1 y back"]) {
    test(`${backend}: a clock that is ${step} for 20 s leaves nothing wrong`, async (t) => {
      const expected = { ...right, ...onlyHistory[step] };
      assert.deepEqual(await liveThrough(t, backend, { ms: steps[step] ?? 0, forMs: 20 * second, expected }), expected);
    });
  }
}

const verbs = [
  ...["enqueue in", "enqueue at", "retry backoff", "rate", "queue rate", "schedule every", "schedule cron"],
  ...["schedule once", "listener delay", "call due", "record commit", "retention", "reservation", "key window"],
  ...["session", "doctor"],
];
const right = Object.fromEntries(verbs.map((verb) => [verb, "right"]));

/** What is only history keeps the time that a clock said which was behind: by their time commits and ended jobs are old, and leave. */
const onlyHistory: Readonly<Record<string, Table>> = {
  "1 h back": { "record commit": "the past" },
  "1 y back": {
    "record commit": "the past",
    retention: "removed what is young",
    rate: "during: not all were let in",
    "queue rate": "during: not all were let in",
  },
};

type Table = Readonly<Record<string, string>>;
type Wrong = { readonly ms: number; readonly forMs: number; readonly expected: Table };

async function liveThrough(t: TestContext, backend: Backend, { ms, forMs, expected }: Wrong): Promise<Table> {
  const table: Record<string, string> = { ...right };
  const wrong = (verb: string, what: string): void => void (table[verb] = what);
  // What was begun may still be on its way to the server. What is expected to be wrong has lost its rows, which no waiting brings
  // back, so it is looked at once.
  const eventually = async (verb: string, what: string, isRight: () => Promise<boolean>): Promise<void> => {
    const asked = async (): Promise<true | undefined> => ((await isRight()) ? true : undefined);
    const found = expected[verb] === what ? asked() : until(what, asked, { ms: 10_000 }).catch(() => undefined);
    if ((await found) === undefined) wrong(verb, what);
  };
  const server = await target(t, (_request, response) => void response.writeHead(200).end());
  const clock = manualClock({ at: "2026-03-02T12:00:10.500Z" });
  const { book } = await openTest(t, backend, {
    use: [noop, fails, rated, heard, Note],
    clock,
    calls: { allow: ["127.0.0.1"] },
    ...(backend === "sqlite" && { url: ":memory:" }),
  });
  const world = { book, clock, url: server.url };
  await book.queues.limit("narrow", { rate: { max: 2, per: "1m" } });
  await book.schedules.create("every", { every: "1m", job: noop, params: {}, overlap: "allow" });
  await book.schedules.create("cron", { cron: "* * * * *", job: noop, params: {}, overlap: "allow" });
  const worker = await book.startWorker();
  const start = clock.now();
  const old = await book.jobs.enqueue(noop, {}, { tags: ["old"] });
  const at = await book.jobs.enqueue(noop, {}, { at: start + 30 * day });
  await book.records.put(Note, { id: "n", text: "before" });
  await worker.idle();
  await pass(world, 10 * second);

  // The wrong moment.
  clock.step(ms);
  // The book looks up what was there before. A real clock gives it five seconds for that.
  await book.write(() => undefined);
  await clock.nextTurn();
  await roomsOf(book).store.begunEnded();
  const believedMs = forMs > limits.clockHoldMs ? limits.clockHoldMs + second : 0;
  if (believedMs > 0) await pass(world, believedMs);
  const asked = clock.now() - ms;
  const during = await askForAll(world, "during");
  const refused = await book.retain({ jobs: "30d", apply: true }).catch((error: unknown) => error);
  if (!isDaybookError(refused) && (refused as { jobs: number }).jobs > 0) wrong("retention", "removed something");
  await clock.advance(Math.max(300, forMs - believedMs));
  await worker.idle();
  clock.step(-ms);
  await book.write(() => undefined);

  // From here on it is right.
  const after = await askForAll(world, "after");
  const now = clock.now();
  await worker.idle();
  await eventually("doctor", "something is left", async () => (await book.doctor()).length === 0);

  // Where time stood still, because the clock had gone back by little, that little is added.
  const heldMs = ms > 0 && ms <= limits.clockSmoothMs ? ms : 0;
  for (const [verb, { due, waits }] of Object.entries(await dueTimes(world, after))) {
    if (Math.abs(due - now - waits) > heldMs) wrong(verb, `asked for later, it is due ${due - now - waits} ms off`);
  }
  for (const [verb, { due, waits }] of Object.entries(await dueTimes(world, during))) {
    const offMs = due - asked - waits;
    if (offMs > limits.clockAheadMs || offMs < Math.min(0, ms < -limits.clockSmoothMs ? 0 : -Math.abs(ms)))
      wrong(verb, `asked for in the wrong moment, it is due ${offMs} ms off`);
  }
  const later = await book.jobs.enqueue(noop, {}, { at: now + 2 * hour });
  if ((await dueOf(book, later.id)) !== now + 2 * hour) wrong("enqueue at", "another time than was given");
  const { status, availableAt } = await book.jobs.get(at.id);
  if (ms < 30 * day ? availableAt !== start + 30 * day : status !== "completed") wrong("enqueue at", status);
  if ((await book.retain({ jobs: "30d", apply: true })).jobs > 0) wrong("retention", "removed what is young");
  if ((await book.jobs.get(old.id)).status !== "completed") wrong("retention", "gone");

  // Records: order by id, times as the clock said, and the past is found by either.
  await clock.advance(second);
  const known = async (asOf: number | Date): Promise<string | undefined> =>
    (await book.records.find(Note, "n", { asOf }))?.text;
  if ((await known(new Date(now + heldMs))) !== "after") wrong("record commit", "the newest is not found by its time");
  if ((await known(new Date(start + 500))) !== "before") wrong("record commit", "the past");
  if ((await known(during.commit)) !== "during") wrong("record commit", "by its id");

  // A session is where it was, and its beat is of now: of the five seconds that pass at once here, whichever came last.
  await pass(world, 5 * second);
  await eventually("session", "its beat is of another time", async () => {
    const { status: session, last_heartbeat_at: heardAt } = await readSession(book, book.sessionId);
    return session === "running" && Math.abs(heardAt - clock.now()) <= 5 * second;
  });

  // Five minutes on: each slot once, and of what a rate allows no more and no less.
  for (let passed = 0; passed < 10; passed++) {
    await pass(world, 30 * second);
    await worker.idle();
  }
  for (const name of ["every", "cron"]) {
    await eventually(`schedule ${name}`, "not each of 5 slots was fired once", async () => {
      const { items } = await book.schedules.decisions(name, { limit: 500 });
      const slots = Array.from({ length: 5 }, (_, index) => start - (start % minute) + (index + 1) * minute);
      return slots.every((slot) => items.filter(({ at: of, jobId }) => of === slot && jobId !== null).length === 1);
    });
  }
  for (const moment of ["during", "after"]) {
    const isAll = async (name: string, queue: string): Promise<boolean> =>
      (await startsOf(world, name, queue, moment)) === 3;
    await eventually("rate", `${moment}: not all were let in`, () => isAll("rated", "default"));
    await eventually("queue rate", `${moment}: not all were let in`, () => isAll("noop", "narrow"));
  }

  // Keys are taken for their ten minutes, and free then.
  const isTaken = async ({ window }: Asked): Promise<boolean> => !(await book.jobs.enqueue(noop, {}, window)).created;
  if (!(await isTaken(after))) wrong("key window", "free too early");
  await pass(world, 6 * minute);
  for (const asked of [during, after]) if (await isTaken(asked)) wrong("key window", `${asked.moment}: never free`);
  // What was due in ten minutes has happened by now, once.
  await pass(world, minute);
  await worker.idle();
  for (const { delayed, call, once, moment } of [during, after]) {
    const hasRun = async (): Promise<boolean> => (await book.jobs.get(delayed.id)).status === "completed";
    await eventually("enqueue in", `${moment}: has not run`, hasRun);
    const wasSent = async (): Promise<boolean> => (await book.calls.get(call.id)).status === "succeeded";
    await eventually("call due", `${moment}: was not sent`, wasSent);
    await eventually("schedule once", `${moment}: not once`, async () => {
      const { items } = await book.schedules.decisions(once);
      return items.filter(({ jobId }) => jobId !== null).length === 1;
    });
  }
  if ((await book.doctor()).length > 0) wrong("doctor", JSON.stringify(await book.doctor()));
  return table;
}
