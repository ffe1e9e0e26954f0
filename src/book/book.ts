// The book as its user sees it.
import type { Access } from "../access/access.ts";
import type { Audit } from "../access/audit.ts";
import type { Operations } from "../access/operations.ts";
import type { Tokens } from "../access/token.ts";
import type { Calls } from "../calls/calls.ts";
import type { Resealed } from "../calls/reseal.ts";
import type { Apps } from "./app-verbs.ts";
import type { BackupReport } from "../storage/backup.ts";
import type { BookInfo } from "../storage/info.ts";
import type { Awaitable, JoinedClient } from "../storage/store.ts";
import type { DeadLetters } from "../events/dead-letters.ts";
import type { Events } from "../events/events.ts";
import type { Listeners } from "../events/listeners.ts";
import type { LiveVerbs } from "../events/live/live.ts";
import type { DirectVerbs } from "../jobs/direct/run-now.ts";
import type { Reservations } from "../jobs/direct/reservation.ts";
import type { Groups } from "../jobs/group/groups.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Workers } from "../jobs/lease/workers.ts";
import type { Queues } from "../jobs/queues.ts";
import type { Templates } from "../jobs/template/template.ts";

import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import type { LogTo } from "../open/log.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { Sinks } from "./sinks.ts";
import type { Finding, Mended } from "./doctor.ts";
import type { Causes } from "./causes.ts";
import type { Definitions } from "./definitions.ts";
import type { FoundPage } from "./find.ts";
import type { BookHealth } from "./health.ts";

import type { Runs } from "../telemetry/runs.ts";
import type { TelemetryReads } from "../telemetry/telemetry.ts";
import type { Retained } from "../open/retain.ts";
import type { RetainOptions } from "../open/retention.ts";
import type { Sessions } from "../telemetry/session.ts";
import type { ReadTx, UserTx } from "./user-tx.ts";
import type { Backups } from "./backups.ts";
import type { Records } from "./book-records.ts";
import type { Held, Released, ReleaseOptions } from "./copy.ts";
import type { HeldFilter } from "../jobs/wait/hold.ts";

export type BookZone = {
  /** That of schedules that name none, and whose app names none. */
  readonly zone: string;
};

export type Book = AsyncDisposable & {
  /** Where the book is, without a password. */
  readonly location: string;
  readonly tenantId: string;
  /** The id of this process's session; null when the book was opened with `attach: false`. */
  readonly sessionId: string | null;
  readonly sessions: Sessions;
  readonly jobs: Jobs & DirectVerbs;
  readonly groups: Groups;
  readonly reservations: Reservations;
  readonly workers: Workers;
  readonly schedules: Schedules;
  readonly calls: Calls;
  readonly events: Events & LiveVerbs;
  readonly listeners: Listeners;
  readonly sinks: Sinks;
  readonly deadLetters: DeadLetters;
  readonly apps: Apps;
  readonly queues: Queues;
  readonly templates: Templates;
  /** What can be made by its name: the jobs that the book knows, and the events that this process declares. */
  readonly definitions: Definitions;
  readonly runs: Runs;
  readonly telemetry: TelemetryReads;
  readonly records: Records;
  /** Who may use the book from elsewhere. It is about all tenants: a tenant's handle refuses it. */
  readonly tokens: Tokens;
  /** What was changed through a server, by whom and from where. */
  readonly audit: Audit;
  /** What takes long and was begun through a server. */
  readonly operations: Operations;
  /** What a server stands on. It is about all tenants: a tenant's handle throws `forbidden`. */
  readonly access: Access;
  /** Runs `work` in one transaction: all of it happens, or none of it, and when this resolves it is on disk. It may
   *  run more than once, so it must have no effects outside `tx`.
   *
   *  ```ts
   *  await book.write(async (tx) => {
   *    await tx.sql`insert into note (body) values (${"milk"})`;
   *    await tx.sql`update counter set value = value + 1`;
   *  });
   *  ``` */
  write<T>(work: (tx: UserTx) => Awaitable<T>): Promise<T>;
  /** Runs `work` in a transaction that you began with `pg`, on PostgreSQL: what it does is kept when you commit, which wakes the
   *  workers, and undone when you roll back. When `work` fails, only its own part is undone, and your transaction goes on.
   *
   *  ```ts
   *  async function order(client: PoolClient) {
   *    await client.query("begin");
   *    await client.query("insert into public.purchase (id) values ($1)", ["o-17"]);
   *    await book.join(client, (tx) => tx.jobs.enqueue(sendReceipt, { orderId: "o-17" }));
   *    await client.query("commit");
   *  }
   *  ``` */
  join<T>(client: JoinedClient, work: (tx: UserTx) => Awaitable<T>): Promise<T>;
  /** Reads several things of one moment, off the event loop, for at most five seconds.
   *
   *  ```ts
   *  const notes = await book.read((tx) => tx.sql<{ body: string }>`select body from note order by id`);
   *  ``` */
  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T>;
  /** The same book seen by one tenant: also of sessions, recovery and losses it is told its own. A handler's `book` is one of
   *  these. Closing either closes both. */
  tenant(id: string): Book;
  /** Copies the book to `path` while it is in use, checks the copy, and only then gives it its name. Opened as a book, the copy
   *  holds everything that was open, until it is released. It is about all tenants, so `book.tenant(id)` and a handler's `book`
   *  refuse it; a job that makes backups calls it on the book that `open()` returned. */
  backup(path: string, options?: { overwrite?: boolean }): Promise<BackupReport>;
  /** Backups in the book's own folder, for who names no path. They are about all tenants. */
  readonly backups: Backups;
  /** What a copy of a book holds, of all tenants: jobs by tenant and kind, and schedules. Both lists are empty in other books. */
  held(filter?: HeldFilter): Promise<Held>;
  /** Lets go what a copy holds, or of that what is named, or drops it.
   *
   *  ```ts
   *  await book.release({ kind: "call", olderThan: "1h", drop: true });
   *  await book.release();
   *  ``` */
  release(options?: ReleaseOptions): Promise<Released>;
  /** Marks the book as a copy, as `backup` does with what it writes: for one that was copied by other means. Do it before
   *  any process works on it, with a handle that was opened with `attach: false`. */
  markAsCopy(): Promise<Held>;
  /** Checks every invariant of the book; an empty list means all is well. It is about all tenants, so `book.tenant(id)` and a
   *  handler's `book` refuse it. */
  doctor(): Promise<Finding[]>;
  /** Puts right what `doctor` finds and a rule can mend: times that were written while the clock was wrong.
   *
   *  ```ts
   *  const { mended } = await book.mend({ dryRun: true });
   *  ``` */
  mend(options?: { readonly dryRun?: boolean }): Promise<Mended>;
  /** Seals what calls sent and were answered, and the webhooks of notices, anew with the first of the keys that the book was opened
   *  with, also what was kept in clear: for a change of keys. It is about all tenants, and may be interrupted and repeated.
   *
   *  ```ts
   *  const [fresh, old] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
   *  await using book = await open("shop.db", { calls: { key: [fresh, old] } });
   *  const { requests, answers, notices, missing } = await book.reseal({ dryRun: true });
   *  ``` */
  reseal(options?: { readonly dryRun?: boolean }): Promise<Resealed>;
  /** Where the book is, how large, and what made it. It is about all tenants: the size grows with what each of them writes. */
  info(): Promise<BookInfo & BookZone>;
  /** How the book is for this tenant at this moment, and whether somebody should look: what is open, failed, late and behind, in one
   *  cheap answer.
   *
   *  ```ts
   *  const { verdict, reasons } = await book.health();
   *  for (const { about, because } of reasons) console.log(verdict, about, because);
   *  ``` */
  health(): Promise<BookHealth>;
  /** What an id, the beginning of one (8 characters or more) or an exact name stands for.
   *
   *  ```ts
   *  const { items } = await book.find("o-17");
   *  for (const { kind, id, title } of items) console.log(kind, id, title);
   *  ``` */
  find(text: string): Promise<FoundPage>;
  /** What caused a job, a run, an event, a call or a commit, and what it caused: the tree from its first cause on.
   *
   *  ```ts
   *  const { id } = await book.events.publish("order.paid", { orderId: "o-17" });
   *  const { nodes, edges } = await book.causes(id);
   *  for (const { from, to, kind } of edges) console.log(from, kind, to, nodes.length);
   *  ``` */
  causes(id: string): Promise<Causes>;
  /** Metrics of this tenant as Prometheus reads them (text, version 0.0.4), from the book as it is now.
   *
   *  ```ts
   *  console.log(await book.metrics());
   *  ``` */
  metrics(): Promise<string>;
  /** Says what of this tenant is old enough to leave, and with `apply` removes it, in slices of their own transactions. A process that
   *  works does so for all tenants soon after it began and every hour, as the `retention` of `open` says.
   *
   *  ```ts
   *  const { jobs, events } = await book.retain();
   *  await book.retain({ jobs: { olderThan: "7d", keep: 1000, status: "completed" }, apply: true });
   *  ``` */
  retain(options?: RetainOptions): Promise<Retained>;
  /** Starts a worker that runs the jobs of `use`, until it is stopped or the book is closed. */
  startWorker(options?: WorkerOptions): Promise<Worker>;
  /** Works until the process is told to stop (SIGINT, SIGTERM), then closes the book. When a handler ignores its signal, or
   *  closing takes too long, the process ends with the exit code 23 soon after its `grace`. What fails meanwhile is said on stderr,
   *  or to `log`. */
  work(options?: WorkerOptions & { readonly log?: LogTo }): Promise<void>;
  /** Waits for what was begun, ends reads that are under way (`closed`), ends the session and closes the book. From the moment it is
   *  called, every other verb is refused with `closed`, but for those of handlers that still run, until it resolves. */
  close(): Promise<void>;
};
