// What the worst inputs need to be there, made anew for each try: jobs, groups, schedules, letters, leases.
import { readFileSync, writeFileSync } from "node:fs";
import { limits } from "../../src/core/limits.ts";
import type { Book } from "../../src/index.ts";
import { longest, numbers, workOn, worstJson, type World } from "./worst-book.ts";

export type Input = Readonly<Record<string, unknown>>;

/** `on`: another book than that of the world. `meanwhile` is done again and again until the verb has answered. */
export type Asked = { readonly input: Input; readonly on?: Book; readonly meanwhile?: () => Promise<unknown> };

/** Makes the input anew for each try, with all that it needs. */
export type Make = (world: World) => Input | Asked | Promise<Input | Asked>;

export const name = longest(limits.nameBytesMax);
export const note = longest(limits.noteBytesMax);
export const manyNames = numbers(limits.tokenNamesMax).map((n) => longest(limits.nameBytesMax, `${n}`));

export const noted = {
  caller: { tokenId: "t", name, tenant: null, role: "admin", queues: null, names: null },
  tenant: "default",
  verb: "jobs.cancel",
  from: "127.0.0.1",
  requestId: "r",
} as const;
export const operation = { verb: "jobs.cancelAll", tenant: "default", caller: noted.caller, input: { note } };

export function withTokens(make: (id: string) => Input): Make {
  return async ({ book }) => {
    const all = numbers(limits.pageMax);
    const of = { name, role: "worker", tenant: "default", queues: manyNames, names: manyNames } as const;
    const made = await Promise.all(all.map(() => book.tokens.create(of)));
    return make(made[0]?.id ?? "");
  };
}

export function withOperations(make: (id: string) => Input): Make {
  return async ({ book }) => {
    const all = numbers(limits.pageMax);
    const made = await Promise.all(all.map(() => book.access.operations.start(operation, async () => ({ note }))));
    return make(made[0]?.id ?? "");
  };
}

/** With the id of a job of large params that stands in line. */
export function jobWith(make: (id: string, world: World) => Input): Make {
  return async (world) => make((await world.book.jobs.enqueue("work", largest(), { in: "1d" })).id, world);
}

/** With the key of an app that no process has any more. */
export function appGone(make: (key: string) => Input): Make {
  return async ({ book }) =>
    make((await book.apps.list()).find(({ key }) => key.startsWith("gone-"))?.key ?? "none is left");
}

/** With a queue of many jobs that were cancelled. */
export function cancelledJobs(make: (queue: string) => Input): Make {
  return async ({ book, next, many }) => {
    const queue = next();
    const jobs = await book.jobs.enqueueMany(
      "work",
      numbers(many).map(() => ({})),
      { queue, in: "1d" },
    );
    await book.write(async (tx) => {
      for (const { id } of jobs) await tx.jobs.cancel(id);
    });
    return make(queue);
  };
}

/** After many dead letters more. */
export function manyLetters(make: Make): Make {
  return async (world) => {
    await sayMany(world.book, world.many, "heard.aloud");
    await workOn(world.book, ["events"]);
    return make(world);
  };
}

/** A file of the same records with other keys. */
export function renamed(file: string, name: string): string {
  const copy = `${file}-${name}`;
  writeFileSync(copy, readFileSync(file, "utf8").replaceAll(/"(?:key|id)":"/g, `$&${name}-`));
  return copy;
}

export function groupOfMany(make: (id: string, world: World) => Input | Promise<Input>): Make {
  return async (world) => {
    const { id } = await world.book.groups.create({ mode: "parallel" }, (group) => {
      for (let n = 0; n < world.many; n++) group.add("work", {}, { queue: "long" });
    });
    return make(id, world);
  };
}

export function members(count: number): object[] {
  return numbers(count).map((n) => ({ job: "work", params: {}, queue: "grouped", priority: n % 1000, tags: [`${n}`] }));
}

export function templateWith(make: (name: string, world: World) => Input | Promise<Input>): Make {
  return async (world) => {
    const called = world.next();
    await world.book.templates.create(called, { job: "work", params: largest() });
    return make(called, world);
  };
}

/** With the name of a schedule that has many decisions, each with its job. */
export function scheduleWith(make: (name: string, world: World) => Input | Promise<Input>): Make {
  return async (world) => {
    const { name: called } = await emptySchedule(world.book, world.next());
    const { from, to } = slots(world.many);
    await world.book.schedules.backfill(called, from, to);
    return make(called, world);
  };
}

export async function emptySchedule(
  book: Book,
  called: string,
  timing: { readonly every: string } | { readonly cron: string; readonly zone: string } = { every: "1s" },
): Promise<{ readonly name: string }> {
  const start = "2026-01-01T00:00:00Z";
  await book.queues.pause("slots");
  await book.schedules.create(called, {
    ...timing,
    start,
    job: "work",
    params: {},
    queue: "slots",
    overlap: "allow",
  });
  return { name: called };
}

export function slots(count: number, seconds = 1): { readonly from: string; readonly to: string } {
  const from = Date.UTC(2026, 0, 1);
  return { from: new Date(from).toISOString(), to: new Date(from + (count - 1) * seconds * 1000).toISOString() };
}

export function callWith(make: (id: string, world: World) => Input | Promise<Input>): Make {
  return async (world) => {
    const { id } = await world.book.calls.submit({ url: "https://api.example.com/", json: largest(), in: "1d" });
    return make(id, world);
  };
}

/** A remote worker, for which so many jobs with large params stand in line. */
export async function attached({ book, next, worker }: World, jobs: number): Promise<string> {
  const name = next();
  const { session } = await book.workers.attach({ names: [name] }, worker.grant);
  for (let n = 0; n < jobs; n++) await book.jobs.enqueue(name, largest());
  return session;
}

/** With the lease of a job that it has claimed. */
export function leased(make: (lease: string) => Input): Make {
  return async (world) => {
    const [job] = await world.book.workers.claim(await attached(world, 1), {}, world.worker.grant);
    return make(job?.lease ?? "");
  };
}

export function onCopy(input: Input): Make {
  return async ({ copy }) => ({ on: await copy({ marked: true }), input });
}

export async function sayMany(book: Book, count: number, topic = "tail.said"): Promise<void> {
  for (let from = 0; from < count; from += 1000) {
    await book.write(async (tx) => {
      for (const n of numbers(Math.min(1000, count - from))) await tx.events.publish(topic, { n: from + n });
    });
  }
}

/** Many events that a listener, which may have been removed before, has not yet heard. */
export async function heardByMany(book: Book, count: number): Promise<void> {
  const worker = await book.startWorker({ queues: ["none"] });
  await worker.stop();
  await sayMany(book, count, "heard.again");
}

/** A megabyte of what is dearest. */
export function largest(size?: number): object {
  return worstJson["many small fields"](size);
}

export function words(count: number): string {
  return numbers(count)
    .map((n) => `w${n.toString(36)}`)
    .join(" ");
}
