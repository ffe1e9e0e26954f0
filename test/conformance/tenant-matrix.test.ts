// Every answer a tenant gets is the same whatever another tenant has and does, and holds nothing of it.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { z } from "zod";
import { app, command, entity, event, job, listener, manualClock, relation, sink } from "../../src/index.ts";
import type { Book, ManualClock, OpenOptions } from "../../src/index.ts";
import { ok, target } from "../calls/target.ts";
import { tokenVerbs } from "../../src/access/token.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { backends, openTest, testFolder, type Backend } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const canary = "zq9canary";

const Note = entity("note", { schema: z.object({ id: z.string(), text: z.string() }), key: "id", search: ["text"] });
const Cites = relation("cites", { from: Note, to: Note, schema: z.object({ why: z.string() }) });
const Said = event<{ text: string }>("said.aloud");
const work = job("work", {
  attempts: 1,
  concurrency: 5,
  rate: { max: 100, per: "1m" },
  async run({ text, fails }: { text: string; fails?: boolean }, { log, step }) {
    log(`working on ${text}`, { text });
    await step("first", () => text);
    if (fails === true) throw new Error(`cannot do ${text}`);
    return { text };
  },
});
const program = command("program", { argv: ["echo", "{text}"], attempts: 1 });
const hear = listener("hear", {
  on: Said,
  tenants: "all",
  attempts: 1,
  run({ text }) {
    throw new Error(`deaf to ${text}`);
  },
});
const give = sink("give", { on: "said.>", tenants: "all", to: () => undefined });

const options: OpenOptions = { use: [work, program, hear, give, Note, Cites, Said] };

/** Does everything that a tenant can do, in words that say whose it is. */
async function fill(book: Book, word: string, url: string): Promise<Record<string, string>> {
  const tagged = { tags: [word], key: `key-${word}` };
  const done = await book.jobs.enqueue(work, { text: word }, tagged);
  const failed = await book.jobs.enqueue(work, { text: word, fails: true }, { idempotencyKey: `once-${word}` });
  await book.jobs.enqueue(program, { text: word });
  const group = await book.groups.create({ name: `group-${word}`, mode: "parallel" }, (add) =>
    add.add(work, { text: word }),
  );
  await book.templates.create(`template-${word}`, { job: work, params: { text: word } });
  await book.jobs.enqueueFrom(`template-${word}`);
  await book.schedules.create(`schedule-${word}`, { every: "1h", job: work, params: { text: word } });
  await book.schedules.trigger(`schedule-${word}`);
  const said = await book.events.publish(Said, { text: word });
  const call = await book.calls.submit({ url: `${url}/${word}`, name: word, tags: [word], json: { word } });
  await book.records.put(Note, { id: word, text: `about ${word}` });
  await book.records.put(Note, { id: `${word}-2`, text: "first" });
  await book.records.put(Note, { id: `${word}-2`, text: word });
  await book.records.link(Cites, { from: word, to: `${word}-2` }, { why: word });
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
  const waiting = await book.jobs.enqueue(work, { text: word }, { queue: `queue-${word}`, in: "1d", key: word });
  await book.jobs.enqueue(work, { text: word }, { queue: `queue-${word}` });
  await book.queues.pause(`queue-${word}`, word);
  await book.jobs.pause("program", word);
  await book.reservations.reserve(`reserved-${word}`, { note: word });
  const [run] = (await book.runs.list({ status: "error" })).items;
  await book.runs.pin(run?.id ?? "", { note: word });
  const [dead] = (await book.deadLetters.list()).items;
  await foldRuns(roomsOf(book).store);
  await tamper(
    book,
    (
      tx,
    ) => tx.sql`insert into daybook_eviction (tenant_id, day_at, what, reason, removed, from_at, until_at, removed_at)
    values (${book.tenantId}, 0, 'run', 'age', ${word.length}, 1, 1, 1)`,
  );
  const { access } = roomsOf(book).access;
  const caller = { tokenId: word, name: word, tenant: null, role: "admin", queues: null, names: null } as const;
  const asked = { tenant: book.tenantId, caller, verb: "jobs retain", input: { word } };
  await tokenVerbs(roomsOf(book).store).create({ role: "read", tenant: book.tenantId, name: word });
  await access.link({ tenant: book.tenantId });
  await access.note({ ...asked, subject: word, from: word, requestId: word });
  const operation = await access.operations.start(asked, async () => ({ word }));
  const key = { tenant: book.tenantId, tokenId: word, key: word, route: word, bodyHash: word };
  const begun = await access.replies.begin(key);
  if (begun.state === "fresh") await access.replies.finish(begun.id, { status: 200, headers: {}, body: word });
  const { session } = await book.workers.attach({ names: [`remote-${word}`], host: word });
  await book.jobs.enqueue(`remote-${word}`, { text: word });
  await book.workers.claim(session);
  return {
    operation: operation.id,
    done: done.id,
    failed: failed.id,
    group: group.id,
    said: said.id,
    call: call.id,
    waiting: waiting.id,
    run: run?.id ?? "",
    dead: dead?.id ?? "",
  };
}

/** What a tenant may ask, with what it knows: its own word, ids and names. */
function questions(book: Book, word: string, id: Record<string, string>): Record<string, () => unknown> {
  const { done = "", failed = "", group = "", said = "", call = "", waiting = "", run = "", dead = "" } = id;
  return {
    "sessions.list": () => book.sessions.list(),
    "sessions.look": () => book.sessions.look(),
    "jobs.get": () => book.jobs.get(failed),
    "jobs.list": () => book.jobs.list({ limit: 500 }),
    "jobs.chain": () => book.jobs.chain(failed),
    "jobs.explain": () => book.jobs.explain(waiting),
    "jobs.recover": () => book.jobs.recover({ dryRun: true }),
    "jobs.result": () => book.jobs.result(done),
    "jobs.place": () => book.jobs.place(waiting),
    "groups.get": () => book.groups.get(group),
    "groups.list": () => book.groups.list(),
    "groups.members": () => book.groups.members(group),
    "groups.wait": () => book.groups.wait(group),
    "reservations.list": () => book.reservations.list(),
    "schedules.get": () => book.schedules.get(`schedule-${word}`),
    "schedules.list": () => book.schedules.list(),
    "schedules.decisions": () => book.schedules.decisions(`schedule-${word}`),
    "schedules.why": () => book.schedules.why(`schedule-${word}`, "2026-01-01T00:00:00Z"),
    "schedules.preview": () => book.schedules.preview(`schedule-${word}`, { count: 2 }),
    "calls.get": () => book.calls.get(call),
    "calls.list": () => book.calls.list(),
    "calls.explain": () => book.calls.explain(call),
    "events.get": () => book.events.get(said),
    "events.list": () => book.events.list(),
    "events.lineage": () => book.events.lineage(said),
    "events.replay": () => book.events.replay(said, { dryRun: true }),
    "listeners.get": () => book.listeners.get("hear"),
    "listeners.list": () => book.listeners.list(),
    "listeners.lag": () => book.listeners.lag("hear"),
    "sinks.get": () => book.sinks.get("give"),
    "sinks.list": () => book.sinks.list(),
    "sinks.lag": () => book.sinks.lag("give"),
    "deadLetters.get": () => book.deadLetters.get(dead),
    "deadLetters.list": () => book.deadLetters.list(),
    "deadLetters.groups": () => book.deadLetters.groups(),
    "apps.list": () => book.apps.list(),
    "apps.get": () => book.apps.get(`app-of-${canary}`),
    "apps.listeners": () => book.apps.listeners(),
    "queues.list": () => book.queues.list(),
    "queues.line": () => book.queues.line(`queue-${word}`),
    "templates.get": () => book.templates.get(`template-${word}`),
    "templates.list": () => book.templates.list(),
    "runs.get": () => book.runs.get(run),
    "runs.list": () => book.runs.list({ limit: 500 }),
    "runs.logs": () => book.runs.logs(run),
    "telemetry.overview": () => book.telemetry.overview({ since: "1d" }),
    "telemetry.summaries": () => book.telemetry.summaries({ since: "1d" }),
    "telemetry.apps": () => book.telemetry.apps({ since: "1d" }),
    "telemetry.errors": () => book.telemetry.errors({ since: "1d" }),
    "telemetry.slow": () => book.telemetry.slow({ since: "1d" }),
    "telemetry.buckets": () => book.telemetry.buckets({ since: "1h" }),
    "telemetry.logs": () => book.telemetry.logs({ since: "1d" }),
    "telemetry.evictions": () => book.telemetry.evictions(),
    "jobs.cancelAll": () => book.jobs.cancelAll({}, { dryRun: true }),
    "jobs.retryAll": () => book.jobs.retryAll({}, { dryRun: true }),
    "audit.list": () => book.audit.list(),
    "operations.get": () => book.operations.get(id["operation"] ?? ""),
    "operations.list": () => book.operations.list(),
    "tokens.list": () => book.tokens.list(),
    "backups.list": () => book.backups.list(),
    retain: () => book.retain({ jobs: 0, calls: 0, events: 0, runs: 0, logs: 0, decisions: 0, rollups: 0, sizeMax: 0 }),
    "records.entry": () => book.records.entry(Note, word),
    "records.find": () => book.records.find(Note, word),
    "records.get": () => book.records.get(Note, word),
    "records.query": () => book.records.query(Note).search("about").list(),
    "records.head": () => book.records.head(),
    "records.history": () => book.records.history(Note, word),
    "records.since": () => book.records.since(0),
    "records.diff": () => book.records.diff(0, 3),
    "records.blame": () => book.records.blame(Note, word),
    "records.types": () => book.records.types(),
    "records.type": () => book.records.type("note"),
    "records.export": () => Array.fromAsync(book.records.export()),
    "records.traverse": () => book.records.traverse(Note, word, { via: Cites, hops: 3 }),
    "records.commits": () => book.records.commits(),
    "records.commit": () => book.records.commit(1),
    "records.changes": () => book.records.changes(1),
    health: () => book.health(),
    find: () =>
      Promise.all(
        [done, group, said, call, run, dead, word, "work", `queue-${word}`, "1"].map((each) => book.find(each)),
      ),
    "find what is the other's": () =>
      Promise.all(
        [canary, `queue-${canary}`, `app-of-${canary}`, `template-${canary}`, id["foreignSession"] ?? "none"].map(
          (each) => book.find(each),
        ),
      ),
    causes: () => Promise.all([done, failed, said, call, run, "1"].map((each) => book.causes(each))),
    "definitions.list": () => book.definitions.list(),
    "definitions.get": () => book.definitions.get("work"),
    metrics: () => book.metrics(),
    doctor: () => book.doctor(),
    info: () => book.info(),
    mend: () => book.mend({ dryRun: true }),
    held: () => book.held(),
    release: () => book.release({ dryRun: true }),
    // What is the other's is as unknown as what never was.
    "a foreign session": () => book.telemetry.overview({ session: id["foreignSession"] ?? "none" }),
    "runs of a foreign session": () => book.runs.list({ session: id["foreignSession"] ?? "none" }),
    "an unknown job": () => book.jobs.get("none"),
  };
}

/** Verbs that change something, and what tells of the book and of no tenant. */
const notAsked = new Set(
  `jobs.enqueue jobs.enqueueMany jobs.enqueueFrom jobs.cancel jobs.retry jobs.pause jobs.resume jobs.move jobs.prioritise
  jobs.edit jobs.runNow groups.create groups.add groups.cancel reservations.reserve reservations.renew reservations.release
  schedules.create schedules.edit schedules.pause schedules.resume schedules.remove schedules.rename schedules.trigger schedules.backfill
  calls.submit calls.cancel calls.resend calls.reschedule calls.delete events.publish events.emit events.live
  listeners.pause listeners.resume listeners.rewind listeners.skip listeners.remove sinks.pause sinks.resume
  deadLetters.redrive deadLetters.redriveAll deadLetters.discard deadLetters.discardAll apps.reload apps.stop apps.remove queues.pause
  queues.resume queues.limit queues.normalise templates.create templates.edit templates.archive templates.restore runs.pin
  runs.unpin records.put records.putMany records.ensure records.patch records.delete records.link records.unlink
  records.restore records.import records.watch records.transact write read join tenant backup startWorker work close
  workers.attach workers.claim workers.extend workers.progress workers.log workers.settle workers.fail workers.leave
  tokens.create tokens.revoke operations.cancel backups.create markAsCopy reseal location tenantId sessionId`.split(
    /\s+/,
  ),
);

function verbsOf(book: Book): string[] {
  return Object.entries(book).flatMap(([name, value]: [string, unknown]) =>
    typeof value === "object" && value !== null ? Object.keys(value).map((verb) => `${name}.${verb}`) : [name],
  );
}

async function ask(asked: Record<string, () => unknown>): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const [name, question] of Object.entries(asked)) {
    answers[name] = await Promise.resolve()
      .then(question)
      .catch((error: unknown) => ({ error: String(error).replace(/session \S+$/, "session …") }));
  }
  return answers;
}

/** A second process of another tenant, which crashed and left a job running, and an app. */
async function crowd(t: TestContext, backend: Backend, url: string, clock: ManualClock): Promise<Book> {
  const house = app(`app-of-${canary}`, {
    setup: (home) => void home.on("said.>", { name: `listener-of-${canary}` }, () => undefined),
  });
  const { book } = await openTest(t, backend, {
    url,
    clock,
    tenant: "other",
    metadata: { secret: canary },
    files: testFolder(t),
    ...options,
    use: [...(options.use ?? []), house],
    calls: { allow: ["127.0.0.0/8"] },
  });
  return book;
}

for (const backend of backends) {
  describe(backend, () => {
    test("no answer to a tenant changes with what another tenant has, or holds a word of it", async (t) => {
      const clock = manualClock();
      const server = await target(t, ok);
      const { book, url } = await openTest(t, backend, {
        ...options,
        clock,
        files: testFolder(t),
        calls: { allow: ["127.0.0.0/8"] },
        metadata: { secret: canary },
      });
      const mine = book.tenant("mine");
      const known = await fill(mine, "mine", server.url);
      await mine.sessions.look();
      const before = await ask(questions(mine, "mine", known));

      const crowded = await crowd(t, backend, url, clock);
      await fill(crowded, canary, server.url);
      const lost = await crowded.jobs.enqueue(work, { text: canary }, { queue: "lost" });
      await tamper(book, async (tx) => {
        await tx.sql`insert into daybook_session (id, host, pid, started_at, last_heartbeat_at, stopped_at, status, error_type, error_message,
            error_trace, metadata, dropped_runs)
          values (${"gone"}, ${canary}, 4711, ${tx.now}, ${tx.now}, ${tx.now}, 'error', ${canary}, ${canary}, ${canary}, '{}', 7)`;
        await tx.sql`update daybook_line set status = 'running', run_id = ${"run-of-other"}, started_at = ${tx.now},
            session_seq = (select seq from daybook_session where id = ${"gone"})
          where seq = (select seq from daybook_job where id = ${lost.id})`;
      });

      const after = await ask(questions(mine, "mine", { ...known, foreignSession: crowded.sessionId ?? "" }));
      assert.deepEqual(wordless(after), wordless(before));
      // The whole book's owner sees what the tenants do not.
      const all = JSON.stringify(await ask(questions(book, "mine", known)));
      assert.ok(all.includes(canary) && all.includes("4711"));
      assert.equal((await book.jobs.recover({ dryRun: true })).lost, 1);
      assert.equal((await book.tenant("other").jobs.recover({ dryRun: true })).lost, 1);
    });

    test("what is about all tenants is refused to a tenant's handle", async (t) => {
      const { book } = await openTest(t, backend);
      const mine = book.tenant(book.tenantId);
      const verbs: Record<string, () => Promise<unknown>> = {
        "tokens.create": () => mine.tokens.create({ role: "read", tenant: mine.tenantId }),
        "tokens.list": () => mine.tokens.list(),
        "tokens.revoke": () => mine.tokens.revoke("none"),
        "backups.create": () => mine.backups.create(),
        "backups.list": () => mine.backups.list(),
        backup: () => mine.backup("never.db"),
        doctor: () => mine.doctor(),
        held: () => mine.held(),
        info: () => mine.info(),
        markAsCopy: () => mine.markAsCopy(),
        mend: () => mine.mend(),
        release: () => mine.release(),
        reseal: () => mine.reseal(),
      };

      for (const [verb, call] of Object.entries(verbs)) {
        const message = `${verb} is about all tenants: call it on the book that open() returned`;
        await assert.rejects(call(), { code: "forbidden", message });
      }
    });

    test("the matrix asks every verb that answers, and the other tenant is in every table", async (t) => {
      const clock = manualClock();
      const server = await target(t, ok);
      const { book, url } = await openTest(t, backend, { ...options, clock, files: testFolder(t) });
      const crowded = await crowd(t, backend, url, clock);
      await fill(crowded, canary, server.url);

      const asked = new Set(Object.keys(questions(book, "", {})));
      assert.deepEqual(
        verbsOf(book).filter((verb) => !asked.has(verb) && !notAsked.has(verb)),
        [],
      );
      const empty = [];
      for (const table of await tenantTables(book, backend)) {
        const [row] = await tamper(book, (tx) =>
          tx.sql<{ n: number }>([`select count(*) as n from ${table} where tenant_id = 'other'`] as never),
        );
        if (row?.n === 0) empty.push(table);
      }
      // These are there while something runs, or fails, and no verb reads them.
      assert.deepEqual(empty, ["daybook_call_host", "daybook_permit"]);
    });
  });
}

function wordless(answers: Record<string, unknown>): Record<string, unknown> {
  for (const [name, answer] of Object.entries(answers)) {
    assert.ok(!JSON.stringify(answer ?? null).includes(canary.slice(0, 9)) || name === "apps.get", name);
  }
  return JSON.parse(JSON.stringify(answers)) as Record<string, unknown>;
}

async function tenantTables(book: Book, backend: Backend): Promise<string[]> {
  const rows = await book.read((tx) =>
    backend === "sqlite"
      ? tx.sql<{ name: string }>`select list.name from pragma_table_list list join pragma_table_info(list.name) info
          where list.type = 'table' and info.name = 'tenant_id' order by 1`
      : tx.sql<{ name: string }>`select table_name as name from information_schema.columns
          where table_schema = 'daybook' and column_name = 'tenant_id' order by 1`,
  );
  return rows.map(({ name }) => name);
}
