// The worst legal input of every verb of the table: what holds the loop longest of all that may be given.
import { join } from "node:path";
import { limits } from "../../src/core/limits.ts";
import { Cites, longest, Note, numbers, workOn, worstJson, type World } from "./worst-book.ts";
import {
  appGone,
  attached,
  callWith,
  cancelledJobs,
  emptySchedule,
  groupOfMany,
  heardByMany,
  jobWith,
  largest,
  leased,
  manyLetters,
  manyNames,
  members,
  name,
  note,
  noted,
  onCopy,
  operation,
  renamed,
  sayMany,
  scheduleWith,
  slots,
  templateWith,
  withOperations,
  withTokens,
  words,
  type Input,
  type Make,
} from "./worst-makes.ts";

/** By what is worst about it. A verb of which one input is as bad as another has one. */
type Row = Readonly<Record<string, Make>>;

const page = { limit: limits.pageMax };
const tags = numbers(limits.tagsMax).map((n) => longest(limits.tagBytesMax, `${n}`));
const headers = Object.fromEntries(numbers(limits.headersMax).map((n) => [`x-${n}`, "v".repeat(200)]));

function always(input: Input): Make {
  return () => input;
}

/** One row for each kind of document. */
function eachJson(make: (document: unknown, world: World) => Input | Promise<Input>, size?: number): Row {
  return Object.fromEntries(
    Object.entries(worstJson).map(([what, document]) => [what, (world: World) => make(document(size), world)]),
  );
}

/** The 29th of February on a Monday comes every 28 years. */
const rarely = "0 0 29 2 1#5";
const longCron = `${numbers(60).join(",")} ${numbers(24).join(",")} * * *`;

const conditions = numbers(900).map((n) => `text ne "x${n}"`);
const every = always({});
const everything = { jobs: "1ms", calls: "1ms", events: "1ms", runs: "1ms", logs: "1ms", decisions: "1ms" };

/** A schedule keeps its params as a text in its own document, in which each quote counts twice. */
const settingBytes = 450_000;

/** By noun and verb. A verb without a row is refused by the test. */
export const worst: Readonly<Record<string, Row>> = {
  "apps.list": { "many registrations": every },
  "apps.show": { "many registrations": always({ key: "house" }) },
  "apps.remove": {
    "a dry run": appGone((key) => ({ key })),
    "many registrations": appGone((key) => ({ key, apply: true })),
  },

  "jobs.list": {
    "a full page": always({ ...page, queue: "long" }),
    "a page of large documents": always({ ...page, queue: "large" }),
  },
  "jobs.show": { "large params": ({ large }) => ({ id: large }), "many lines": ({ done }) => ({ id: done }) },
  "jobs.explain": { "a long line": ({ job }) => ({ id: job }) },
  "jobs.place": { "a long line": ({ job }) => ({ id: job }) },
  "jobs.result": { "a large result": ({ done }) => ({ id: done }) },
  "jobs.enqueue": {
    ...eachJson((params, world) => ({ name: "work", params, tags, key: `${longest(480)}${world.next()}`, in: "1d" })),
  },
  "jobs.runNow": eachJson((params) => ({ name: "work", params, timeout: "1m" })),
  "jobs.cancel": { "large params": jobWith((id) => ({ id })) },
  "jobs.retry": {
    "large params": async ({ book, next }) => {
      const { id } = await book.jobs.enqueue("work", largest(), { queue: `cancelled-${next()}` });
      await book.jobs.cancel(id);
      return { id };
    },
  },
  "jobs.move": {
    "the first of a long line": ({ job }) => ({ id: job, first: true }),
    "right before another, again and again": ({ job, other }) => ({ id: other, before: job }),
  },
  "jobs.prioritise": { "in a long line": ({ job }) => ({ id: job, priority: limits.priorityMax }) },
  "jobs.edit": eachJson((params, { job }) => ({ id: job, params })),
  "jobs.pause": { "many in line": always({ name: "work", note }) },
  "jobs.cancelAll": {
    "a dry run": every,
    "many in line": async ({ book, next, many }) => {
      const queue = next();
      await book.jobs.enqueueMany(
        "work",
        numbers(many).map(() => ({})),
        { queue },
      );
      return { queue, apply: true };
    },
  },
  "jobs.retryAll": {
    "a dry run": every,
    "many that failed": async ({ book, next, many }) => {
      const queue = next();
      await book.jobs.enqueueMany(
        "work",
        numbers(many).map(() => ({ fails: true })),
        { queue },
      );
      await workOn(book, [queue]);
      return { queue, status: ["failed"], apply: true };
    },
  },
  "jobs.deleteAll": {
    "a dry run": every,
    "many that were cancelled": cancelledJobs((queue) => ({ queue, status: ["cancelled"], apply: true })),
  },
  "jobs.resume": {
    "many that wait for it": async ({ book, next, many }) => {
      const queue = next();
      await book.jobs.pause("work");
      await book.jobs.enqueueMany(
        "work",
        numbers(many).map(() => ({})),
        { queue },
      );
      // A worker that meets them parks them.
      await workOn(book, [queue]);
      return { name: "work" };
    },
  },

  "groups.list": { "a group of many": always(page) },
  "groups.show": { "a group of many": ({ group }) => ({ id: group }) },
  "groups.create": {
    "a group of many": ({ many }) => ({ mode: "parallel", name, jobs: members(many) }),
    "one after another": ({ many }) => ({ mode: "sequential", jobs: members(many) }),
  },
  "groups.add": eachJson((params, { group }) => ({ id: group, name: "work", params, queue: "long" })),
  "groups.cancel": { "a group of many": groupOfMany((id) => ({ id })) },
  "groups.wait": {
    "a group of many": groupOfMany(async (id, { book }) => {
      await book.groups.cancel(id);
      return { id };
    }),
  },

  "templates.list": { "a full page": always(page) },
  "templates.show": { "large params": templateWith((name) => ({ name })) },
  "templates.create": eachJson((params, { next }) => ({ name: next(), job: "work", params })),
  "templates.edit": eachJson((params) => ({ name: "template-1", params })),
  "templates.archive": { "large params": templateWith((name) => ({ name })) },
  "templates.restore": {
    "large params": templateWith(async (name, { book }) => {
      await book.templates.archive(name);
      return { name };
    }),
  },

  "definitions.list": { "a full page": always(page) },
  "definitions.show": { "any input": always({ name: "work" }) },

  "schedules.list": { "a full page": always(page) },
  "schedules.show": { "many decisions": scheduleWith((name) => ({ name })) },
  "schedules.decisions": { "a full page": scheduleWith((name) => ({ name, ...page })) },
  "schedules.why": { "many decisions": scheduleWith((name) => ({ name, time: "2026-01-01T00:00:30Z" })) },
  "schedules.pause": { "many decisions": scheduleWith((name) => ({ name, note })) },
  "schedules.resume": {
    "many decisions": scheduleWith(async (name, { book }) => {
      await book.schedules.pause(name);
      return { name };
    }),
  },
  "schedules.remove": { "many decisions and jobs": scheduleWith((name) => ({ name })) },
  "schedules.trigger": {
    "large params": async ({ book, next }) => {
      const name = next();
      await book.schedules.create(name, { every: "1h", job: "work", params: largest(settingBytes) });
      return { name };
    },
  },
  "schedules.backfill": {
    "many slots": async ({ book, next, many }) => ({ ...(await emptySchedule(book, next())), ...slots(many) }),
    "many slots of an expression": async ({ book, next, many }) => {
      const { name } = await emptySchedule(book, next(), { cron: longCron, zone: "Europe/Oslo" });
      return { name, ...slots(many, 60) };
    },
  },
  "schedules.rename": { "many decisions": scheduleWith((name, { next }) => ({ name, to: next() })) },
  "schedules.create": {
    ...eachJson((params, { next }) => ({ name: next(), every: "1s", job: "work", params }), settingBytes),
    "an expression that hardly ever comes": ({ next }) => ({
      name: next(),
      cron: rarely,
      zone: "Europe/Oslo",
      job: "work",
    }),
    "a start in the past": ({ next }) => ({ name: next(), every: "1s", start: "1970-01-01T00:00:00Z", job: "work" }),
  },
  "schedules.edit": {
    ...eachJson((params) => ({ name: "schedule-1", params }), settingBytes),
    "an expression that hardly ever comes": always({ name: "schedule-2", cron: rarely, zone: "Europe/Oslo" }),
  },
  "schedules.preview": {
    "as many fires as may be": always({ cron: longCron, zone: "Europe/Oslo", count: 1000 }),
    "an expression that hardly ever comes": always({ cron: rarely, zone: "Europe/Oslo", count: 1000 }),
  },

  "events.list": {
    "a full page": always({ ...page, topic: "heard.*" }),
    "a page of large documents": always({ ...page, topic: "large.*" }),
  },
  "events.tail": {
    "many at once": ({ book }) => ({ input: { topic: "tail.>", count: 300 }, meanwhile: () => sayMany(book, 300) }),
  },
  "events.show": { "a tree as large as may be shown": ({ event }) => ({ id: event }) },
  "events.publish": {
    ...eachJson((payload) => ({ topic: "heard.large", payload, headers })),
    "a topic of many segments": always({ topic: `${"a.".repeat(limits.topicBytesMax / 2 - 1)}b`, payload: null }),
  },
  "events.replay": {
    "many events": always({ topic: "heard.aloud" }),
    "a dry run": always({ topic: ">", dryRun: true }),
    "large events": always({ topic: "large.*" }),
  },
  "listeners.list": { "many events": every },
  "listeners.show": { "many events": always({ name: "hear" }) },
  "listeners.lag": { "many events": always({ name: "hear" }) },
  "listeners.pause": { "many events": always({ name: "hear", note }) },
  "listeners.resume": { "many events": always({ name: "hear" }) },
  "listeners.rewind": { "to the beginning": always({ name: "hear", to: "beginning" }) },
  "listeners.skip": {
    "many deliveries": async ({ book, many }) => {
      await heardByMany(book, many);
      return { name: "hear", to: "now" };
    },
  },
  "listeners.remove": {
    "a dry run": always({ name: "hear" }),
    "many deliveries": async ({ book, many, next }) => {
      await sayMany(book, many, "left.again");
      const left = (await book.listeners.list()).find(({ name: called }) => called.startsWith("leaving-"));
      return { name: left?.name ?? next(), apply: true };
    },
  },
  "deadLetters.list": { "a full page": always(page) },
  "deadLetters.groups": { "many letters": every },
  "deadLetters.show": { "one of many": ({ letter }) => ({ id: letter }) },
  "deadLetters.redrive": {
    "a dry run": always({ listener: "hear", dryRun: true }),
    "many letters": manyLetters(always({ listener: "hear" })),
  },
  "deadLetters.discard": {
    "a dry run": always({ listener: "hear" }),
    "many letters": manyLetters(always({ listener: "hear", reason: note.slice(0, 500), apply: true })),
  },

  "calls.list": { "a full page": always(page), "by tag": always({ ...page, tag: "many" }) },
  "calls.show": { "a large request": ({ call }) => ({ id: call }) },
  "calls.explain": { "a large request": ({ call }) => ({ id: call }) },
  "calls.reveal": { "a large request": ({ call }) => ({ id: call }) },
  "calls.curl": { "a large request": ({ call }) => ({ id: call }) },
  "calls.submit": eachJson((jsonBody) => ({
    url: `https://api.example.com/${"p".repeat(500)}`,
    jsonBody,
    tags,
    in: "1d",
  })),
  "calls.cancel": { "a large request": callWith((id) => ({ id })) },
  "calls.resend": {
    "a large request": callWith(async (id, { book }) => {
      await book.calls.cancel(id);
      return { id, in: "1d" };
    }),
  },
  "calls.reschedule": { "a large request": callWith((id) => ({ id, in: "2d" })) },
  "calls.delete": {
    "a large request": callWith(async (id, { book }) => {
      await book.calls.cancel(id);
      return { id, apply: true };
    }),
  },

  "sinks.list": { "any input": every },
  "sinks.show": { "any input": always({ name: "give" }) },
  "sinks.lag": { "any input": always({ name: "give" }) },
  "sinks.pause": { "any input": always({ name: "give", note }) },
  "sinks.resume": { "any input": always({ name: "give" }) },

  "workers.attach": {
    "as many names and queues as may be": always({
      names: numbers(limits.remoteNamesMax).map((n) => longest(200, `${n}`)),
      queues: numbers(limits.remoteNamesMax).map((n) => longest(200, `${n}`)),
    }),
    ...eachJson((value) => ({ names: ["nobody's"], metadata: { value } }), settingBytes),
  },
  "workers.claim": {
    "large params": async (world) => {
      const session = await attached(world, 5);
      return { session, most: limits.leasedJobsMax };
    },
  },
  "workers.extend": { "large params": leased((lease) => ({ lease })) },
  "workers.progress": { "large params": leased((lease) => ({ lease, done: 0.5, note: note.slice(0, 250) })) },
  "workers.log": { "a long line": leased((lease) => ({ lease, message: note })) },
  "workers.settle": { "large params": leased((lease) => ({ lease, result: { note } })) },
  "workers.fail": { "large params": leased((lease) => ({ lease, error: { message: note, trace: note } })) },
  "workers.leave": {
    "many jobs": async ({ book, next, many, worker }) => {
      const session = next();
      const names = [session];
      const { session: holder } = await book.workers.attach({ names }, worker.grant);
      for (let n = 0; n < Math.min(many, limits.leasesHeldMax); n++) await book.jobs.enqueue(session, {});
      while ((await book.workers.claim(holder, { most: limits.leasedJobsMax })).length > 0) continue;
      return { session: holder };
    },
  },

  "queues.list": { "many queues": every },
  "queues.line": { "a full page of a long line": always({ queue: "long", ...page }) },
  "queues.pause": { "a long line": always({ queue: "long", note }) },
  "queues.limit": { "a long line": always({ queue: "long", concurrency: 1, rate: { max: 1, per: "1d" } }) },
  "queues.normalise": {
    "a dry run": always({ queue: "long", dryRun: true }),
    "a long line": always({ queue: "long" }),
  },
  "queues.resume": {
    "a long line": async ({ book }) => {
      await book.jobs.pause("work");
      return { queue: "long" };
    },
  },
  "reservations.list": { "any input": always({ all: true }) },

  "runs.list": { "a full page": always(page), "by name and time": always({ ...page, name: "work", since: "1d" }) },
  "runs.show": { "many lines": ({ run }) => ({ id: run }) },
  "runs.summary": { "a year": always({ ...page, since: "365d" }) },
  "runs.overview": { "a year": always({ since: "365d" }) },
  "runs.slow": { "a year": always({ ...page, since: "365d" }) },
  "runs.pin": { "any input": ({ run }) => ({ id: run, note }) },
  "runs.unpin": { "any input": ({ run }) => ({ id: run }) },

  "records.types": { "many records": every },
  "records.list": {
    "as many conditions as may be": always({
      type: "note",
      filters: conditions,
      ...page,
    }),
    "a long list of values": always({
      type: "note",
      filters: [`n in ${JSON.stringify(numbers(limits.questionValuesMax))}`],
      ...page,
    }),
    "a page of large documents": always({ type: "note", filters: ['@key gte "a"'], order: "n", desc: true, ...page }),
    "many links": always({ type: "cites", filters: ["to:n gte 0"], ...page }),
  },
  "records.show": Object.fromEntries(Object.keys(worstJson).map((key) => [key, always({ type: "note", key: [key] })])),
  "records.traverse": { "a hub": always({ type: "note", key: "hub", via: ["cites"], direction: "both", hops: 10 }) },
  "records.history": { "many versions": always({ type: "note", key: ["changing"], ...page }) },
  "records.diff": { everything: ({ commit }) => ({ from: "0", to: `${commit}`, ...page }) },
  "records.put": {
    ...eachJson((document, { next }) => ({ type: "note", document: { id: next(), ...(document as object) } })),
    "many words": ({ next }) => ({ type: "note", document: { id: next(), text: words(100_000) } }),
  },
  "records.count": { "as many conditions as may be": always({ type: "note", filters: conditions }) },
  "records.aggregate": {
    "many groups": always({ type: "note", numbers: ["count", "sum:n"], by: ["n"], filters: ["n lt 9000"], ...page }),
    "as many conditions as may be": always({ type: "note", numbers: ["count"], filters: conditions }),
  },
  "records.search": { "a full page": always({ type: "note", words: "words of note", ...page }) },
  "records.blame": { "many versions": always({ type: "note", key: ["changing"] }) },
  "records.watch": { "a commit of many changes": always({ type: "note", after: 0, count: 1 }) },
  "records.patch": {
    ...eachJson(async (fields, { book, next }) => {
      const id = next();
      await book.records.put(Note, { id, text: "short", list: [] });
      return { type: "note", key: [id], fields };
    }),
    "all fields of a large document": async ({ book, next }) => {
      const id = next();
      await book.records.put(Note, { id, ...largest() });
      return { type: "note", key: [id], fields: largest() };
    },
  },
  "records.link": {
    "a long text": always({ type: "cites", from: "hub", to: "changing", document: { why: note } }),
  },
  "records.unlink": {
    "one of a hub": async ({ book }) => {
      await book.records.link(Cites, { from: "changing", to: "hub" }, {});
      return { type: "cites", key: ["changing", "hub"] };
    },
  },
  "records.restore": { "an old version": ({ commit }) => ({ type: "note", key: ["note-3"], to: `${commit}` }) },
  "records.delete": {
    "a large document": async ({ book, next }) => {
      const id = next();
      await book.records.put(Note, { id, ...largest() });
      return { type: "note", key: [id] };
    },
    "a hub with its links": async ({ book, next, many }) => {
      const id = next();
      await book.records.put(Note, { id });
      await book.write(async (tx) => {
        for (const n of numbers(many - 1)) await tx.records.link(Cites, { from: id, to: `note-${n}` }, {});
      });
      return { type: "note", key: [id], unlink: true };
    },
  },
  "records.export": { "large documents": ({ folder, next }) => ({ file: join(folder, next()) }) },
  "records.import": {
    "a dry run": ({ file }) => ({ file, dryRun: true }),
    "many records": ({ file, next }) => ({ file: renamed(file, next()), onConflict: "upsert" }),
    "large documents": ({ largeFile, next }) => ({ file: renamed(largeFile, next()), onConflict: "upsert" }),
  },
  "commits.list": { "a full page": always(page) },
  "commits.show": { "as many changes as may be": ({ commit }) => ({ id: commit }) },

  "sessions.list": { "a full page": always(page) },
  "sessions.show": { "many runs": ({ book }) => ({ id: book.sessionId }) },

  "book.errors": { "a year": always({ ...page, since: "365d" }) },
  "book.logs": { "a year": always({ ...page, since: "365d" }) },
  "book.metrics": { "many queues": every },
  "book.health": { "many rows": every },
  "book.find": {
    "the beginning of many ids": ({ job }) => ({ text: job.slice(0, 8) }),
    "a name": always({ text: "work" }),
  },
  "book.causes": { "a tree as large as may be shown": ({ event }) => ({ id: event }) },
  "book.info": { "any input": every },
  "book.tenants": { "any input": every },
  "book.doctor": { "many rows": every },
  "book.recover": { "a dry run": every, "any input": always({ apply: true }) },
  "book.reseal": { "a dry run": every, "many calls": always({ apply: true }) },
  "book.mend": { "a dry run": every, "any input": always({ apply: true }) },
  "book.retain": {
    "a dry run": always({ ...everything }),
    "many jobs": cancelledJobs(() => ({ ...everything, apply: true })),
    "a large group": groupOfMany(async (id, { book }) => {
      await book.groups.cancel(id);
      return { ...everything, apply: true };
    }),
    "many decisions of open jobs": scheduleWith(() => ({ decisions: "1ms", apply: true })),
    "many events": async ({ book, many }) => {
      await sayMany(book, many);
      return { events: "1ms", apply: true };
    },
  },
  "book.backup": { "all of it": ({ folder, next }) => ({ path: join(folder, next()) }) },
  "backups.create": { "all of it": every },
  "backups.list": { "any input": every },
  "book.held": { "many jobs": onCopy({}) },
  "book.release": {
    "a dry run": onCopy({ dryRun: true }),
    "many jobs": onCopy({}),
    "many jobs, dropped": onCopy({ drop: true, apply: true }),
  },
  "book.markAsCopy": { "many jobs": async ({ copy }) => ({ on: await copy({ marked: false }), input: {} }) },
  "tokens.create": {
    "any input": always({ name, wholeBook: true, role: "worker", queues: manyNames, names: manyNames }),
  },
  "tokens.list": { "many tokens": withTokens(() => page) },
  "tokens.revoke": { "many tokens": withTokens((id) => ({ id })) },
  "audit.list": {
    "many notes": async ({ book, many }) => {
      await Promise.all(numbers(many).map((n) => book.access.note({ ...noted, subject: `${n}`, input: { note } })));
      return page;
    },
    "one of many": always({ ...page, subject: "7", verb: "jobs.cancel" }),
  },
  "operations.list": { "many operations": withOperations(() => page) },
  "operations.show": { "any input": withOperations((id) => ({ id })) },
  "operations.cancel": {
    "one that runs": async ({ book }) => {
      const never = Promise.withResolvers<unknown>();
      const { id } = await book.access.operations.start(operation, async ({ signal }) => {
        signal.addEventListener("abort", () => never.resolve(null));
        return never.promise;
      });
      return { id };
    },
  },
  "views.create": { "any input": every },
  "views.drop": { "any input": every },
};

/** What only a program has: lists of many in one call. */
export const worstCalls: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
  "book.jobs.enqueueMany": ({ book, many }) =>
    book.jobs.enqueueMany(
      "work",
      numbers(many).map(() => ({})),
      { queue: "long" },
    ),
  "book.records.putMany": ({ book, many, next }) => {
    const id = next();
    return book.records.putMany(
      Note,
      numbers(many).map((n) => ({ id: `${id}-${n}`, n })),
    );
  },
};
