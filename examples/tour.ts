// npm start: a walk through what Daybook does today, on a book that is thrown away at the end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { styleText } from "node:util";
import { isDaybookError, job, open, type Book } from "daybook";
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

const folder = await mkdtemp(join(tmpdir(), "daybook-tour-"));
try {
  await tour();
} finally {
  await rm(folder, { recursive: true });
}
say("That was all", "The temporary book is removed. Yours begins with open(); see README.md.");

async function tour(): Promise<void> {
  await using book = await open(join(folder, "shop.db"), { use: [deliver] });
  say("A book is one SQLite file", `${book.location}, opened by session ${book.sessionId}`);
  await allOrNothing(book);
  await groupCommit(book);
  await jobs(book);
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

async function jobs(book: Book): Promise<void> {
  const ada = await book.write(async (tx) => {
    await tx.sql`create table parcel (name text primary key, delivered_at integer not null) strict`;
    return tx.jobs.enqueue(deliver, { to: "ada" });
  });
  const bob = await book.jobs.enqueue(deliver, { to: "bob" }, { in: "1h" });
  await (await book.startWorker()).idle();

  const tries = await book.jobs.chain(ada.id);
  const told = tries.map(({ status, run }) => `${status}${run?.error ? ` (${run.error.message})` : ""}`);
  say("Work is a job, made in your own transaction", `and tried again when it fails: ${told.join(", then ")}`);

  const { because } = await book.jobs.explain(bob.id);
  say("A job that has not run says why", because.join(" "));
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
