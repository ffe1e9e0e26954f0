// npm run tour: a walk through what Daybook does today, on a book that is thrown away at the end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { styleText } from "node:util";
import { entity, isDaybookError, job, open, type Book, type Worker } from "daybook";
import { z } from "zod";
import { blinds } from "./home/blinds.ts";
import { house } from "./home/house.ts";
import { lights } from "./home/lights.ts";

const deliver = job<{ to: string }>("deliver", {
  backoff: ["0s"],
  run({ to }, { attempt, finish }) {
    if (attempt === 1) throw new Error("nobody was at home");
    return finish((tx) => tx.sql`insert into parcel (name, delivered_at) values (${to}, ${tx.now})`);
  },
});

const Parcel = entity("parcel", {
  schema: z.object({ id: z.string(), place: z.string() }),
  key: "id",
});

/** A carrier's server, which is busy when it is asked for the first time. */
let asked = 0;
const carrier = createServer((_request, response) => {
  response.writeHead(++asked === 1 ? 503 : 200).end(asked === 1 ? "busy" : "on its way");
});
carrier.listen(0, "127.0.0.1");
await once(carrier, "listening");
const address = carrier.address();
const host = `127.0.0.1:${typeof address === "object" ? address?.port : 0}`;

const folder = await mkdtemp(join(tmpdir(), "daybook-tour-"));
try {
  await tour();
} finally {
  carrier.close();
  await rm(folder, { recursive: true });
}
say("That was all", "The temporary book is removed. Yours begins with open(); see README.md.");

async function tour(): Promise<void> {
  await using book = await open(join(folder, "shop.db"), {
    use: [deliver, Parcel],
    // What is sent is sealed with this key; a program takes its own from its environment.
    calls: { key: Buffer.alloc(32, 7), allow: [host] },
  });
  say("A book is one SQLite file", `${book.location}, opened by session ${book.sessionId}`);
  await allOrNothing(book);
  await groupCommit(book);
  const worker = await book.startWorker();
  await jobs(book, worker);
  await schedules(book);
  await calls(book, worker);
  await records(book);
  await tenants(book);
  await apps();
  await lostProcess(book);
  await lookingAfter(book);
}

async function allOrNothing(book: Book): Promise<void> {
  await book.write(async (tx) => {
    await tx.sql`create table account (name text primary key, cents integer not null check (cents >= 0)) strict`;
    await tx.sql`insert into account values ('ada', 1000), ('bob', 0)`;
  });
  await transfer(book, 400);
  say("A transaction is a function", `400 cents went from ada to bob: ${await balances(book)}`);

  try {
    await transfer(book, 5000);
  } catch (error) {
    if (!isDaybookError(error)) throw error;
    const [reason] = error.message.split(" (");
    say("One that throws never happened", `5000 were refused as ${error.code}, ${reason}: ${await balances(book)}`);
  }
}

async function transfer(book: Book, cents: number): Promise<void> {
  await book.write(async (tx) => {
    await tx.sql`update account set cents = cents + ${cents} where name = 'bob'`;
    await tx.sql`update account set cents = cents - ${cents} where name = 'ada'`;
  });
}

async function balances(book: Book): Promise<string> {
  const rows = await book.read((tx) => tx.sql<{ name: string; cents: number }>`select * from account order by name`);
  return rows.map(({ name, cents }) => `${name} has ${cents}`).join(", ");
}

async function groupCommit(book: Book): Promise<void> {
  await book.write((tx) => tx.sql`create table visit (id integer primary key, page text not null) strict`);
  const visit = (page: string): Promise<unknown> =>
    book.write((tx) => tx.sql`insert into visit (page) values (${page})`);

  const oneByOne = await timed(async () => {
    for (let index = 0; index < 100; index++) await visit("/alone");
  });
  const together = await timed(() => Promise.all(Array.from({ length: 1000 }, () => visit("/together"))));

  const [row] = await book.read((tx) => tx.sql<{ count: number }>`select count(*) as count from visit`);
  say("Every write is on disk when it returns", `100, one after the other: ${oneByOne} ms`);
  say("Writes that wait together share a commit", `1,000 at once: ${together} ms; the table holds ${row?.count} rows`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return Math.round(performance.now() - start);
}

async function jobs(book: Book, worker: Worker): Promise<void> {
  const ada = await book.write(async (tx) => {
    await tx.sql`create table parcel (name text primary key, delivered_at integer not null) strict`;
    return tx.jobs.enqueue(deliver, { to: "ada" });
  });
  const bob = await book.jobs.enqueue(deliver, { to: "bob" }, { in: "1h" });
  await worker.idle();

  const tries = await book.jobs.chain(ada.id);
  const told = tries.map(({ status, run }) => `${status}${run?.error ? ` (${run.error.message})` : ""}`);
  say("Work is a job, made in your own transaction", `and tried again when it fails: ${told.join(", then ")}`);

  const { because } = await book.jobs.explain(bob.id);
  say("A job that has not run says why", because.join(" "));
}

async function schedules(book: Book): Promise<void> {
  await book.schedules.create("mornings", {
    daily: "07:00",
    zone: "Europe/Oslo",
    job: deliver,
    params: { to: "cyd" },
  });
  const [next] = await book.schedules.preview("mornings", { count: 1, zone: "Europe/Oslo" });
  say("A schedule knows when it is due", `in Oslo at ${next?.local}, also when summer time begins`);

  await book.schedules.trigger("mornings");
  const { items } = await book.schedules.decisions("mornings");
  const { because } = await book.schedules.why("mornings", items[0]?.at ?? 0);
  say("And why it fired, or did not", because.join(" "));
}

async function calls(book: Book, worker: Worker): Promise<void> {
  const { id } = await book.write((tx) =>
    tx.calls.submit({ method: "POST", url: `http://${host}/pick-up`, json: { parcel: "p-1" }, retry: ["0s"] }),
  );
  await worker.idle();

  const { status, attempts } = await book.calls.get(id, { reveal: true });
  const answers = attempts.map(({ response }) => `${response?.status} "${response?.said?.body}"`);
  say("An HTTP request that must happen is a call", `the carrier answered ${answers.join(", then ")}: ${status}`);
}

async function records(book: Book): Promise<void> {
  await book.records.put(Parcel, { id: "p-1", place: "shop" }, { actor: "ada", reason: "packed" });
  await book.records.put(Parcel, { id: "p-1", place: "van" }, { actor: "bob", reason: "picked up" });
  const now = await book.records.get(Parcel, "p-1");
  const before = await book.records.get(Parcel, "p-1", { asOf: 1 });
  const { items } = await book.records.history(Parcel, "p-1");
  say("A record keeps every version", `${items.length} of them: in the ${before.place} once, in the ${now.place} now`);
}

async function tenants(book: Book): Promise<void> {
  const seen = await book.tenant("acme").write(async (tx) => tx.tenant);
  say("One book, many tenants", `this handle is "${book.tenantId}", book.tenant("acme") writes as "${seen}"`);
}

async function apps(): Promise<void> {
  await using home = await open(":memory:", { use: [lights, blinds] });
  home.events.emit("motion.hall", { moving: true });
  const { instances, registered } = await home.apps.get("lights");
  const [one] = registered.filter(({ name }) => name === "on");
  say(
    "An app is listeners and schedules with a name",
    `somebody moves: the light is on in the ${[...house.lights].join()}`,
  );
  say("It knows what it does, and where", `${instances.length} instances; "on" is ${one?.handler} at ${one?.location}`);
}

async function lostProcess(book: Book): Promise<void> {
  const program = [...process.execArgv, join(import.meta.dirname, "visitor.ts"), book.location];
  const visitor = spawn(process.execPath, program, { stdio: ["pipe", "pipe", "inherit"] });
  const [id] = (await once(createInterface(visitor.stdout), "line")) as [string];
  const status = async (): Promise<string | undefined> =>
    (await book.sessions.list()).items.find((session) => session.id === id)?.status;
  say("Every process is a session", `process ${visitor.pid} opened the book too: ${await status()}`);

  visitor.kill("SIGKILL");
  await once(visitor, "exit");
  await book.sessions.look();
  say("One that dies without a word is noticed", `after SIGKILL its session is "${await status()}"`);
}

async function lookingAfter(book: Book): Promise<void> {
  const { path, bytes } = await book.backup(join(folder, "backup.db"));
  await using copy = await open(path, { attach: false });
  say("A backup is a checked copy, itself a book", `${bytes} bytes, in which ${await balances(copy)}`);

  const findings = await book.doctor();
  say("The doctor asks what must always hold", findings.length === 0 ? "all is well" : JSON.stringify(findings));
}

function say(title: string, text: string): void {
  console.log(`${styleText("bold", title)}\n  ${text}\n`);
}
