// The book as its user sees it. One per open(); book.tenant(id) is the same book seen by one tenant.
import type { Access } from "../access/access.ts";
import type { Audit } from "../access/audit.ts";
import type { Operations } from "../access/operations.ts";
import type { Tokens } from "../access/token.ts";
import { straysOf } from "../apps/handler.ts";
import { callReads, callVerbs, type Calls } from "../calls/calls.ts";
import { reseal, type Resealed } from "../calls/reseal.ts";
import { appVerbs, type Apps } from "./app-verbs.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkTenant } from "../core/name.ts";
import { backupBook, type BackupReport } from "../storage/backup.ts";
import { readInfo, type BookInfo } from "../storage/info.ts";
import { readAs } from "../storage/reading.ts";
import type { Awaitable, JoinedClient } from "../storage/store.ts";
import { deadLetters, type DeadLetters } from "../events/dead-letters.ts";
import { eventReads, eventVerbs, type Events } from "../events/events.ts";
import { listenerVerbs, type Listeners } from "../events/listeners.ts";
import { liveVerbs, type LiveVerbs } from "../events/live/live.ts";
import type { Job } from "../jobs/define.ts";
import { runNow, type DirectVerbs, type RunNowOptions } from "../jobs/direct/run-now.ts";
import { reservationVerbs, type Reservations } from "../jobs/direct/reservation.ts";
import { groupReads, groupVerbs, type Groups } from "../jobs/group/groups.ts";
import { jobReads, jobVerbs, lookUp, type Jobs, type LookUp, type Within } from "../jobs/jobs.ts";
import { queueReads, queueVerbs, type Queues } from "../jobs/queues.ts";
import { templateReads, templateVerbs, type Templates } from "../jobs/template/template.ts";
import { startWorker, graceMsOf, refuseWithoutWorker } from "../jobs/worker/start-worker.ts";
import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import { checkLog, type LogTo } from "../open/log.ts";
import { callsParts, keepRooms, type Rooms } from "../open/rooms.ts";
import { readBookZone } from "../schedules/book-zone.ts";
import { scheduleReads, scheduleVerbs, type Schedules } from "../schedules/schedules.ts";
import { startTicker } from "../schedules/ticker.ts";
import { sinkVerbs, type Sinks } from "./sinks.ts";
import { namingCaller, outsideUnits, refuseInsideUnit, refuseVerb, wrapVerbs, type Of } from "../storage/unit.ts";
import { examine, mend, type Finding, type Mended } from "./doctor.ts";
import { metrics } from "./metrics.ts";
import { openRuns, type Runs } from "../telemetry/runs.ts";
import { telemetryReads, type TelemetryReads } from "../telemetry/telemetry.ts";
import { everyMinute, retain, type Retained } from "../open/retain.ts";
import type { RetainOptions } from "../open/retention.ts";
import { openSessions, type Sessions } from "../telemetry/session.ts";
import { workUntilSignal } from "./work.ts";
import { readTx, runUserUnit, type ReadTx, type UserTx } from "./user-tx.ts";
import { aboutAllTenants, accessVerbs, withAccess } from "./book-access.ts";
import { backupVerbs, type Backups } from "./backups.ts";
import { bookRecords, type Records } from "./book-records.ts";
import { closeRooms } from "../open/close-rooms.ts";
import { copyMarks, held, markAsCopy, release, type Held, type Released, type ReleaseOptions } from "./copy.ts";
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
  readonly schedules: Schedules;
  readonly calls: Calls;
  readonly events: Events & LiveVerbs;
  readonly listeners: Listeners;
  readonly sinks: Sinks;
  readonly deadLetters: DeadLetters;
  readonly apps: Apps;
  readonly queues: Queues;
  readonly templates: Templates;
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

type Seen = {
  /** The handle that open() returns, which also sees what belongs to no tenant or to all. */
  readonly whole?: boolean;
  /** Names of jobs that this process does not know are enqueued all the same: others may host them. */
  readonly namesOnTrust?: boolean;
};

export function createBook(rooms: Rooms, tenantId: string, { whole = false, namesOnTrust = false }: Seen = {}): Book {
  const seenBy = whole ? null : tenantId;
  const { store, attachment } = rooms;
  const of: Of = { store, tenant: tenantId };
  const within: Within = (unit, { shared } = { shared: false }) =>
    store.write(unit, { by: shared ? "shared" : "engine", tenant: tenantId });
  const strict = rooms.worker !== false && !namesOnTrust;
  const known: LookUp = (wanted) => lookUp(rooms.jobs, wanted, strict);
  const refuse = (verb: string): void => refuseVerb(`book.${verb}`, store);
  const close = async (): Promise<void> => {
    refuseInsideUnit("book.close", store);
    await (rooms.closing ??= closeRooms(rooms));
  };
  function joinWorkers(worker: Worker): void {
    rooms.workers.add(worker);
    // Those that were there before are stopped already.
    if (rooms.closing !== undefined) void worker.stop();
  }
  async function start(options?: WorkerOptions): Promise<Worker> {
    refuse("startWorker");
    if (rooms.worker === false) return refuseWithoutWorker();
    const asked = { ...rooms.worker, ...options };
    // At once, because the listeners of apps hear already.
    if (asked.strict === false) straysOf(store).failTheirRun = true;
    const worker = await startWorker(rooms.jobs, asked, undefined, joinWorkers);
    // Runs of a process that ended before it could.
    rooms.rollUp.soon();
    rooms.ticker ??= startTicker(rooms.jobs, everyMinute(rooms));
    return worker;
  }
  const ofAllTenants: Pick<Book, "backup" | "held" | "release" | "markAsCopy" | "doctor" | "mend" | "reseal" | "info"> =
    {
      backup: (path, options) => backupBook(store, path, options, copyMarks(store.clock.now())),
      held: (filter) => held(rooms, filter),
      release: (options) => release(rooms, options),
      markAsCopy: () => markAsCopy(rooms),
      doctor: () => examine(store),
      mend: (options) => mend(store, options),
      reseal: (options) => reseal(store, rooms.calls.settings.keys, options),
      info: async () => ({ ...(await readInfo(store)), zone: await readBookZone((of) => store.read(of)) }),
    };
  const backups = backupVerbs({
    files: rooms.jobs.files,
    now: () => store.clock.now(),
    backup: ofAllTenants.backup,
  });
  const book: Omit<Book, "access"> = {
    location: store.location,
    tenantId,
    get sessionId() {
      return attachment?.session().id ?? null;
    },
    sessions: outsideUnits(of, "sessions", openSessions(store, attachment, seenBy)),
    jobs: outsideUnits(of, "jobs", {
      ...jobVerbs(rooms.jobs, strict, within, undefined, {
        tenant: tenantId,
        enqueue: rooms.enqueue,
      }),
      ...jobReads(rooms.jobs, tenantId, seenBy),
      runNow: async <Result>(definition: Job<unknown, Result> | string, params?: unknown, options?: RunNowOptions) =>
        rooms.worker === false
          ? refuseWithoutWorker()
          : runNow<Result>(
              {
                engine: rooms.jobs,
                tenant: tenantId,
                grace: rooms.worker.grace,
                join: joinWorkers,
                leave: (worker) => void rooms.workers.delete(worker),
              },
              await lookUp(rooms.jobs, definition, true, () => []),
              params,
              options,
            ),
    }),
    groups: outsideUnits(of, "groups", {
      ...groupVerbs(rooms.jobs, known, within),
      ...groupReads(store, tenantId),
    }),
    reservations: outsideUnits(of, "reservations", reservationVerbs(rooms.jobs, within, tenantId)),
    schedules: outsideUnits(of, "schedules", {
      ...scheduleVerbs(rooms.jobs, within, undefined, { whole }),
      ...scheduleReads(rooms.jobs, tenantId),
    }),
    calls: outsideUnits(of, "calls", {
      ...callVerbs(callsParts(rooms), within),
      ...callReads(callsParts(rooms), store, tenantId),
    }),
    events: {
      ...outsideUnits(of, "events", { ...eventVerbs(rooms.events, within), ...eventReads(rooms.events, tenantId) }),
      ...liveVerbs(rooms.live, rooms.events, tenantId),
    },
    listeners: outsideUnits(of, "listeners", listenerVerbs(rooms.jobs, tenantId)),
    sinks: outsideUnits(of, "sinks", sinkVerbs(rooms.jobs, tenantId)),
    deadLetters: outsideUnits(of, "deadLetters", deadLetters(store, tenantId)),
    apps: outsideUnits(
      of,
      "apps",
      appVerbs(rooms.jobs, { tenant: tenantId, seenBy }, rooms.apps?.tenant === tenantId ? rooms.apps.here : undefined),
    ),
    queues: outsideUnits(of, "queues", { ...queueVerbs(within), ...queueReads(store, tenantId) }),
    templates: outsideUnits(of, "templates", {
      ...templateVerbs(rooms.jobs, known, within),
      ...templateReads(store, tenantId),
    }),
    runs: outsideUnits(of, "runs", openRuns(store, tenantId, seenBy)),
    telemetry: outsideUnits(of, "telemetry", telemetryReads(store, tenantId, seenBy)),
    records: bookRecords(rooms, tenantId),
    ...accessVerbs(rooms, of, whole),
    write: (work) =>
      namingCaller(() => {
        refuse("write");
        checkWork("write", work);
        return store.write((tx) => runUserUnit(tx, rooms, work), { by: "user", tenant: tenantId });
      }),
    join: (client, work) =>
      namingCaller(() => {
        refuse("join");
        checkWork("join", work);
        if (store.join !== undefined) {
          return store.join(client, (tx) => runUserUnit(tx, rooms, work, { joined: true }), tenantId);
        }
        throw invalid("book.join is for books on PostgreSQL, and this one is on SQLite: use book.write");
      }),
    read: (work) =>
      namingCaller(() => {
        refuse("read");
        checkWork("read", work);
        const who = { tenant: tenantId, verb: "book.read", msMax: limits.readMs };
        return store.snapshot((reader) => work(readTx(reader, tenantId, rooms)), who);
      }),
    tenant: (id) => createBook(rooms, checkTenant(id)),
    ...wrapVerbs(ofAllTenants, (name, verb) => async (...args) => {
      refuse(name);
      if (whole) return verb(...args);
      throw aboutAllTenants(name);
    }),
    backups: wrapVerbs(backups, (name, verb) => async (...args) => {
      refuse(`backups.${name}`);
      if (whole) return verb(...args);
      throw aboutAllTenants(`backups.${name}`);
    }),
    async metrics() {
      refuse("metrics");
      const who = { tenant: tenantId, verb: "book.metrics", msMax: limits.reportMs };
      return readAs(who, () => metrics(store, tenantId, seenBy));
    },
    async retain(options) {
      refuse("retain");
      return retain(rooms, tenantId, options);
    },
    startWorker: start,
    work: async ({ log, ...options } = {}) => {
      checkLog(log);
      const working = async (): Promise<Worker> => {
        rooms.log.working(log, { location: store.location, session: book.sessionId });
        return start({ strict: rooms.worker !== false && rooms.worker.strict === true, ...options });
      };
      await workUntilSignal(working, {
        graceMs: graceMsOf({ ...(rooms.worker === false ? {} : rooms.worker), ...options }),
        close,
        running: () => [...rooms.workers].reduce((sum, { running }) => sum + running, 0),
      });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return keepRooms(withAccess(book, rooms, whole), rooms);
}

function checkWork(verb: string, work: unknown): void {
  if (typeof work === "function") return;
  const call = verb === "join" ? "join(client, (tx) => …)" : `${verb}((tx) => tx.sql\`…\`)`;
  throw invalid(`book.${verb} takes a function: book.${call}`);
}
