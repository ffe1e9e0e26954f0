// open(): checks the options, opens the store, attaches the process.
import { announceTo, announceCalls, recordHooks, tellSessionLost } from "./announce.ts";
import { endAccessOf, openAccess } from "../access/access.ts";
import { callJobs } from "../calls/attempt/settled.ts";
import { callKind } from "../calls/call.ts";
import { callJob } from "../calls/attempt/send.ts";
import { noticesOf } from "../calls/webhook.ts";
import { type CallOptions, createCallsRoom } from "../calls/room.ts";
import { collectApps, openApps } from "../apps/apps.ts";
import { moveInstances } from "../apps/instance.ts";
import { checkCount } from "../core/count.ts";
import { toJson } from "../core/json.ts";
import { checkTenant } from "../core/name.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Book } from "../book/book.ts";
import { createBook } from "../book/create-book.ts";
import { invalid } from "../core/error.ts";
import { mendBySelf } from "../book/doctor.ts";
import { migrations, views } from "./migrations.ts";
import { filesFolder, openStore, type StoreOptions } from "../storage/open-store.ts";
import { createViews } from "../storage/view.ts";
import { jobContexts } from "../define/job.ts";
import { liveContexts } from "../define/listener.ts";
import { directJobs, directKind } from "../jobs/direct/reservation.ts";
import { endOrphans } from "../jobs/command/command-record.ts";
import type { Engine } from "../jobs/engine.ts";
import { enqueueTogether } from "../jobs/enqueue.ts";
import { watchLeases } from "../jobs/lease/expire.ts";
import { recoverSession } from "../jobs/settle/rescue.ts";
import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import type { Ports } from "../jobs/kind.ts";
import { catchUps } from "../events/catch-up.ts";
import { catchUpKind, deliveryKind } from "../events/event.ts";
import { deliveries } from "../events/delivery.ts";
import { stampListeners } from "../events/listener.ts";
import { openLive } from "../events/live/live.ts";
import { registerListeners } from "../events/register.ts";
import { checkRetention, saveRetention, type Retention } from "./retention.ts";
import { checkLog, openLog, type LogTo } from "./log.ts";
import { roomsIn, type Rooms } from "./rooms.ts";
import { scheduleKind } from "../schedules/schedule.ts";
import { fires } from "../schedules/fire.ts";
import { writeBookZone } from "../schedules/book-zone.ts";
import { zoneOf } from "../schedules/timing/zone.ts";
import { createScheduleWriter } from "../schedules/write-definitions.ts";
import { attach, unattached } from "../telemetry/attach.ts";
import { openRollUp } from "../telemetry/rollup/roll-up.ts";
import { currentCause } from "../core/cause.ts";
import { buildIndexes } from "../records/indexes/build-indexes.ts";
import type { RecordRoom } from "../records/room.ts";
import { prepareTracing } from "../telemetry/trace.ts";
import { checkUse, collect, type Definition } from "./use.ts";

export type OpenOptions = Partial<Omit<StoreOptions, "ids">> & {
  /** The tenant of the handle that open() returns; default `"default"`. */
  readonly tenant?: string;
  /** False: look at the book without becoming a session of it. */
  readonly attach?: boolean;
  /** True: the book gets the read-only views that docs/origins.md lists, such as `jobs` and `events`, or they are brought up to
   *  date. Without it a book has none. A name that a table or view of yours has is refused. */
  readonly views?: boolean;
  /** The definitions this program knows. Its workers run them. */
  readonly use?: readonly Definition[];
  /** How workers work; false: this process runs nothing and may enqueue names that it does not know. */
  readonly worker?: WorkerOptions | false;
  /** How long things stay. The book keeps it, so it holds for every process until a program says otherwise; what is left out has
   *  its default, and without this option nothing changes. */
  readonly retention?: Retention;
  /** The folder for what is kept beside the book, such as the output of programs; default `<path>-files` for a file, and
   *  `.daybook/files` in the working folder for other books. It is made when it is needed. */
  readonly files?: string;
  /** The zone of schedules that name none, and whose app names none: an IANA name such as "Europe/Madrid". The book keeps it, for other
   *  programs and the command line. Default: what the book has, or else UTC. */
  readonly zone?: string;
  /** How calls are kept and sent: the key that seals them, what they may reach, how many at once. */
  readonly calls?: CallOptions;
  /** Where this process says what failed while it works: a logger such as pino or `console`, a function, or false for nowhere.
   *  Without it `book.work()` says it on stderr, and other workers say nothing. */
  readonly log?: LogTo;
  /** Any JSON, kept with the session: a version, a role, a deployment. */
  readonly metadata?: Record<string, unknown>;
};

const known: readonly (keyof OpenOptions)[] = [
  ...(["tenant", "durability", "schema", "connections", "migrate", "attach", "use", "worker", "metadata"] as const),
  ...(["views", "files", "calls", "zone", "retention", "log", "clock", "random", "waitClock", "fault"] as const),
  "readOnly",
];

/** Opens a book: a file, `:memory:`, or `postgres://…`. A missing file is made; its folder is not.
 *
 *  ```ts
 *  await using book = await open("shop.db");
 *  ``` */
export async function open(url: string, given: OpenOptions = {}): Promise<Book> {
  refuseUnknown(given, known, "open");
  const options = given.readOnly === true ? onlyLooking(given) : given;
  const tenant = checkTenant(options.tenant ?? "default");
  const metadata = toJson(options.metadata ?? {}, { what: "metadata" });
  if (options.durability !== undefined && options.durability !== "full" && options.durability !== "normal") {
    throw invalid(`durability ${JSON.stringify(options.durability)} is not known: "full" or "normal"`);
  }
  if (options.connections !== undefined) checkCount(options.connections, "connections", 2, 100);
  if (options.views !== undefined && typeof options.views !== "boolean") {
    throw invalid(`views ${JSON.stringify(options.views)} is not true or false`);
  }
  const zone = options.zone === undefined ? undefined : zoneOf(options.zone).name;
  const retention = options.retention === undefined ? undefined : checkRetention(options.retention, "retention");
  const use = checkUse(options.use ?? []);
  const { definitions, schedules, listeners, live: liveListeners, events, recordTypes } = collect(use);
  const programs = collectApps(use);
  const files = filesFolder(url, options.files);
  checkLog(options.log);
  await prepareTracing();
  const store = await openStore(url, migrations, options);
  const log = openLog(options.log);
  try {
    if (options.views === true) await createViews(store, views);
    if (zone !== undefined) await writeBookZone(store, zone);
    if (retention !== undefined) await saveRetention(store, retention, log);
    const calls = createCallsRoom(options.calls, store.clock, announceCalls);
    const call = callJob(calls);
    definitions.set(call.name, call);
    const rollUp = openRollUp(store);
    const kinds = {
      [directKind]: directJobs,
      [scheduleKind]: fires,
      [callKind]: callJobs(calls),
      [deliveryKind]: deliveries(),
      [catchUpKind]: catchUps,
    };
    const notices = noticesOf(calls, stampListeners);
    const announce = announceTo(events);
    const ports: Ports = { kinds, announce, notices, jobFailed: log.failed, runsEnded: rollUp.soon };
    const attachment =
      options.attach === false
        ? undefined
        : await attach(store, {
            metadata,
            // Should it not succeed, its apps are shown as stopped until they are set up again, and run all the same.
            onLost: (lost, key) =>
              void store.write((tx) => moveInstances(tx, lost.seq, key.seq)).catch(() => undefined),
            onSilent: async (tx, session) => {
              await recoverSession(tx, ports, session.seq);
              await endAccessOf(tx, session.seq);
              await tellSessionLost(tx, session);
              if (options.worker !== false) tx.afterCommit(() => void endOrphans(jobs).catch(() => undefined));
            },
          });
    const { session, overdue, onTimely } = attachment ?? unattached;
    const jobs: Engine = {
      ...ports,
      store,
      clock: store.clock,
      definitions,
      files,
      session,
      overdue,
      onTimely,
      contextFor: jobContexts(store),
    };
    const scheduled = createScheduleWriter(jobs, tenant, schedules);
    if (attachment !== undefined) {
      if (options.worker !== false) await scheduled.writeAll();
      // Also where nothing runs: whoever lists a listener wants it to hear what is published from now on.
      await registerListeners(store, tenant, listeners);
    }
    const worker = attachment === undefined ? false : (options.worker ?? {});
    const room = { engine: jobs, definitions: events };
    const records: RecordRoom = { store, definitions: recordTypes, hooks: recordHooks, cause: currentCause };
    if (options.attach !== false) await buildIndexes(records);
    const live =
      worker === false
        ? undefined
        : openLive({ store, session, runsWritten: rollUp.soon, contextFor: liveContexts(store) });
    const apps =
      live === undefined
        ? undefined
        : { tenant, here: openApps({ engine: jobs, live, bookFor: (of) => createBook(roomsIn(store), of) }, tenant) };
    const rooms: Rooms = {
      store,
      access: openAccess(store, () => attachment?.session().seq ?? null),
      attachment,
      jobs,
      rollUp,
      scheduled,
      events: room,
      calls,
      live,
      apps,
      records,
      worker,
      enqueue: enqueueTogether(store),
      workers: new Set<Worker>(),
      log,
      // A process that only looks at a book leaves it as it is.
      stopMending: attachment === undefined ? () => undefined : mendBySelf(store, session),
    };
    store.keep("rooms", () => rooms);
    for (const each of liveListeners) await live?.attach(each, tenant);
    await apps?.here.start(programs);
    // Sessions that are provably gone are ended at once; open() does not wait for it.
    attachment?.watch.look().catch(() => undefined);
    // So are leases that ran out while nobody had the book open.
    if (attachment !== undefined)
      watchLeases(jobs)
        .look()
        .catch(() => undefined);
    return createBook(rooms, tenant, { whole: true });
  } catch (error) {
    log.close();
    await store.close();
    throw error;
  }
}

function onlyLooking(options: OpenOptions): OpenOptions {
  const { views: given, migrate, zone, retention } = options;
  if (given === true || migrate === true || zone !== undefined || retention !== undefined) {
    const what = "neither migrated nor given views, a zone or retention";
    throw invalid(`a book that is opened with readOnly is ${what}: leave that out`);
  }
  return { ...options, attach: false, worker: false };
}
