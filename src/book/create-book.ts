// One per open(); book.tenant(id) is the same book seen by one tenant.
import { straysOf } from "../apps/handler.ts";
import { callReads, callVerbs } from "../calls/calls.ts";
import { reseal } from "../calls/reseal.ts";
import { appVerbs } from "./app-verbs.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkTenant } from "../core/name.ts";
import { backupBook } from "../storage/backup.ts";
import { readInfo } from "../storage/info.ts";
import { readAs } from "../storage/reading.ts";
import { deadLetters } from "../events/dead-letters.ts";
import { eventReads, eventVerbs } from "../events/events.ts";
import { listenerVerbs } from "../events/listeners.ts";
import { liveVerbs } from "../events/live/live.ts";
import type { Job } from "../jobs/define.ts";
import { runNow, type RunNowOptions } from "../jobs/direct/run-now.ts";
import { reservationVerbs } from "../jobs/direct/reservation.ts";
import { groupReads, groupVerbs } from "../jobs/group/groups.ts";
import { jobReads, jobVerbs, lookUp, type LookUp, type Within } from "../jobs/jobs.ts";
import { workerVerbs } from "../jobs/lease/workers.ts";
import { queueReads, queueVerbs } from "../jobs/queues.ts";
import { templateReads, templateVerbs } from "../jobs/template/template.ts";
import { startWorker, graceMsOf, refuseWithoutWorker } from "../jobs/worker/start-worker.ts";
import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import { checkLog } from "../open/log.ts";
import { callsParts, keepRooms, type Rooms } from "../open/rooms.ts";
import { readBookZone } from "../schedules/book-zone.ts";
import { scheduleReads, scheduleVerbs } from "../schedules/schedules.ts";
import { startTicker } from "../schedules/ticker.ts";
import { sinkVerbs } from "./sinks.ts";
import { namingCaller, outsideUnits, refuseInsideUnit, refuseVerb, wrapVerbs, type Of } from "../storage/unit.ts";
import { examine, mend } from "./doctor.ts";
import { readCauses } from "./causes.ts";
import { definitionReads } from "./definitions.ts";
import { findAll } from "./find.ts";
import { readHealth } from "./health.ts";
import { metrics } from "./metrics.ts";
import { openRuns } from "../telemetry/runs.ts";
import { telemetryReads } from "../telemetry/telemetry.ts";
import { everyMinute, retain } from "../open/retain.ts";
import { openSessions } from "../telemetry/session.ts";
import { workUntilSignal } from "./work.ts";
import { readTx, runUserUnit } from "./user-tx.ts";
import { aboutAllTenants, accessVerbs, withAccess } from "./book-access.ts";
import { backupVerbs } from "./backups.ts";
import { bookRecords } from "./book-records.ts";
import { closeRooms } from "../open/close-rooms.ts";
import { copyMarks, held, markAsCopy, release } from "./copy.ts";
import type { Book } from "./book.ts";

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
  const known: LookUp = (wanted) => lookUp(rooms.jobs, wanted, { tenant: tenantId, strict });
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
      ...jobVerbs(rooms.jobs, { tenant: tenantId, strict }, within, undefined, rooms.enqueue),
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
              await lookUp(rooms.jobs, definition, { tenant: tenantId, strict: true, read: () => [] }),
              params,
              options,
            ),
    }),
    groups: outsideUnits(of, "groups", {
      ...groupVerbs(rooms.jobs, known, within),
      ...groupReads(store, tenantId),
    }),
    reservations: outsideUnits(of, "reservations", reservationVerbs(rooms.jobs, within, tenantId)),
    workers: outsideUnits(of, "workers", workerVerbs(rooms.jobs, tenantId)),
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
    definitions: outsideUnits(
      of,
      "definitions",
      definitionReads({ store, events: rooms.events.definitions }, tenantId, seenBy),
    ),
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
    async health() {
      refuse("health");
      return readAs({ tenant: tenantId, verb: "book.health" }, () => readHealth(store, tenantId, seenBy));
    },
    async find(text) {
      refuse("find");
      const who = { tenant: tenantId, verb: "book.find" };
      return readAs(who, () => findAll(store, { tenant: tenantId, seenBy, text }));
    },
    async causes(id) {
      refuse("causes");
      return readAs({ tenant: tenantId, verb: "book.causes" }, () => readCauses(store, tenantId, id));
    },
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
