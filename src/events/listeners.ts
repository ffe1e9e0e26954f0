// Listeners as people see them: what each hears, how far behind it is, and whether a session runs it.
import { invalid } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import type { Engine } from "../jobs/engine.ts";
import { pauseName, resumeName } from "../jobs/queues.ts";
import type { Ports } from "../jobs/kind.ts";
import { lockJobs } from "../jobs/lock-order.ts";
import { cancelUnstarted } from "../jobs/settle/cancel.ts";
import { beginCatchUp } from "./catch-up.ts";
import { isForAll, type StartFrom } from "./define.ts";
import {
  topicsOf,
  deliveryName,
  closeListeners,
  findListener,
  lastSeq,
  newTenants,
  stampListeners,
  noListener,
  findLive,
} from "./listener.ts";
import { catchUpKind } from "./event.ts";
import { positionOf } from "./register.ts";

export type ListenerRecord = {
  readonly name: string;
  readonly topics: readonly string[];
  /** Which events of its topics a sink takes, in words; null when it takes all of them, and for other listeners. */
  readonly where: string | null;
  /** `catching_up` while it gets deliveries of past events. */
  readonly state: "live" | "catching_up";
  readonly ordered: boolean;
  readonly attempts: number;
  readonly queue: string;
  readonly startedFrom: string;
  readonly registeredAt: number;
  /** Whether every tenant has it. */
  readonly forAllTenants: boolean;
  /** Whether a running session hosts it. It collects deliveries either way. */
  readonly hosted: boolean;
  readonly paused: { readonly at: number; readonly note: string | null } | null;
  readonly lag: Lag;
  readonly deadLetters: number;
};

/** What is not finished: deliveries that wait or run, and past events that it has not reached yet. */
export type Lag = {
  readonly events: number;
  /** How long ago the oldest of them was published; 0 when there is none. */
  readonly seconds: number;
};

export type Listeners = {
  get(name: string): Promise<ListenerRecord>;
  /** By name. */
  list(): Promise<ListenerRecord[]>;
  lag(name: string): Promise<Lag>;
  /** Keeps its deliveries from starting. It goes on collecting them. */
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** Delivers everything from a position on once more. */
  rewind(name: string, to: Exclude<StartFrom, "now">): Promise<void>;
  /** Cancels the deliveries that wait before a position (default all of them), also those of a listener that was removed. Dead
   *  letters stay. */
  skip(name: string, to?: SkipTo): Promise<{ readonly skipped: number }>;
  /** Ends it: it collects nothing more until a program registers it again, and its deliveries that wait are cancelled. One that runs
   *  goes on, and is not tried again. Dead letters stay. */
  remove(name: string, options?: RemoveOptions): Promise<Removed>;
};

export function listenerVerbs(engine: Engine, tenant: string): Listeners {
  const { store } = engine;
  const write = <T>(unit: (tx: Tx) => Promise<T>): Promise<T> => store.write(unit, { tenant });
  const get = async (name: string): Promise<ListenerRecord> => {
    const found = (await readListeners(store, tenant)).find((each) => each.name === name);
    if (found === undefined) throw noListener(name);
    return found;
  };
  const named = async (tx: Tx, name: string): Promise<string> => deliveryName((await findListener(tx, name)).name);
  return {
    get,
    list: () => readListeners(store, tenant),
    lag: async (name) => (await get(name)).lag,
    pause: (name, note) => write(async (tx) => pauseName(tx, await named(tx, name), note ?? null)),
    resume: (name) => write(async (tx) => resumeName(tx, await named(tx, name))),
    rewind: (name, to) => write((tx) => rewindListener(tx, name, to)),
    skip: (name, to) => skipListener(engine, tenant, name, to),
    remove: (name, options) => removeListener(engine, tenant, name, options),
  };
}

type Row = Omit<ListenerRecord, "topics" | "ordered" | "forAllTenants" | "hosted" | "paused" | "lag"> & {
  readonly topics: string;
  readonly ordered: number;
  readonly forAllTenants: number;
  readonly hosted: number | null;
  readonly pausedAt: number | null;
  readonly note: string | null;
  readonly heardSeq: number;
  readonly startsAt: number | null;
};

async function readListeners(store: Store, tenant: string): Promise<ListenerRecord[]> {
  const rows =
    await store.readHeavy<Row>(sql`select listener.name, listener.topics, listener.predicate as "where", listener.state, listener.ordered,
      listener.attempts, listener.queue, listener.starts_from as "startedFrom", listener.registered_at as "registeredAt",
      listener.for_all as "forAllTenants", paused.paused_at as "pausedAt", paused.note, listener.heard_seq as "heardSeq",
      listener.starts_at as "startsAt",
      (select 1 from daybook_session_host session_host join daybook_session session on session.seq = session_host.session_seq
        where session.status = 'running' and session_host.name = 'listener:' || listener.name limit 1) as hosted,
      (select count(*) from daybook_dead_letter dead_letter where dead_letter.tenant_id = listener.tenant_id
        and dead_letter.listener_seq = listener.seq and dead_letter.ended_at is null) as "deadLetters"
    from daybook_listener listener left join daybook_paused_name paused
      on paused.tenant_id = listener.tenant_id and paused.name = 'listener:' || listener.name
    where listener.tenant_id = ${tenant} and listener.state <> 'removed' order by listener.name`);
  const open = await store.readHeavy<Behind & { name: string }>(sql`select job.name,
      count(*) as events, min(event.published_at) as oldest
    from daybook_line line join daybook_job job on job.seq = line.seq join daybook_event event on event.seq = line.kind_seq
    where line.kind = 'delivery' and line.kind is not null and job.tenant_id = ${tenant} group by job.name`);
  const waiting = new Map(open.map((each) => [each.name, each]));
  const records: ListenerRecord[] = [];
  for (const row of rows) {
    const ahead = row.state === "catching_up" ? await unheard(store, tenant, row) : nothing;
    records.push(toRecord(row, store.clock.now(), [waiting.get(deliveryName(row.name)) ?? nothing, ahead]));
  }
  return records;
}

type Behind = { readonly events: number; readonly oldest: number | null };
const nothing: Behind = { events: 0, oldest: null };

// An upper bound: the listener compares its patterns with an event only when it reaches the event.
async function unheard(store: Store, tenant: string, { heardSeq, startsAt }: Row): Promise<Behind> {
  const [found] =
    await store.readHeavy<Behind>(sql`select count(*) as events, min(published_at) as oldest from daybook_event
    where tenant_id = ${tenant} and seq > ${heardSeq} and published_at >= ${startsAt ?? 0}`);
  return found ?? nothing;
}

function toRecord(row: Row, now: number, behind: readonly Behind[]): ListenerRecord {
  const { pausedAt: at, note, heardSeq: _heard, startsAt: _starts, ...rest } = row;
  const oldest = Math.min(now, ...behind.map((each) => each.oldest ?? now));
  return {
    ...rest,
    topics: topicsOf(row),
    ordered: row.ordered === 1,
    forAllTenants: row.forAllTenants === 1,
    hosted: row.hosted !== null,
    paused: at === null ? null : { at, note },
    lag: { events: behind.reduce((sum, each) => sum + each.events, 0), seconds: (now - oldest) / 1000 },
  };
}

// What people do with a listener: rewind it, let it skip what waits, remove it.

/** Delivers everything from a position on once more. A listener that is catching up can only go back to the beginning: a later
 *  position could lie beyond events that it has not reached yet. */
export async function rewindListener(tx: Tx, name: string, to: Exclude<StartFrom, "now">): Promise<void> {
  await closeListeners(tx);
  const isWhole = to === "beginning";
  const row = isWhole
    ? await findListener(tx, name)
    : await findLive(tx, name, "wait until it is live, or rewind it to the beginning");
  const start = isWhole ? { starts_at: null, starts_seq: 0 } : await positionOf(tx, to, `the rewind of "${name}"`);
  const last = await lastSeq(tx, tx.tenant);
  await tx.run(sql`update daybook_listener set state = 'catching_up', heard_seq = ${start.starts_seq}, heard_to = ${last},
      starts_at = ${start.starts_at}, updated_at = ${tx.now}
    where seq = ${row.seq}`);
  await stampListeners(tx);
  await beginCatchUp(tx, row);
}

export type SkipTo = "now" | Exclude<StartFrom, string>;

/** Cancels the deliveries that wait, up to a position. Running deliveries go on, and dead letters stay. */
export async function skipListener(
  engine: Engine,
  tenant: string,
  name: string,
  to: SkipTo = "now",
): Promise<{ skipped: number }> {
  const { store } = engine;
  const bound = await store.write((tx) => boundOf(tx, name, to), { tenant });
  return { skipped: await cancelWaiting(engine, tenant, name, bound) };
}

async function cancelWaiting(engine: Engine, tenant: string, name: string, bound: Bound): Promise<number> {
  let cancelled = 0;
  for (let after = 0; ;) {
    const slice = await engine.store.write((tx) => skipSlice(tx, engine, { name, after, bound }), { tenant });
    cancelled += slice.cancelled;
    if (slice.last === undefined) return cancelled;
    after = slice.last;
  }
}

type Bound = { readonly seq: number; readonly at: number | null };

async function boundOf(tx: Tx, name: string, to: SkipTo): Promise<Bound> {
  await closeListeners(tx);
  const last = await lastSeq(tx, tx.tenant);
  if (to === "now") {
    const { seq } = await findListener(tx, name, { removed: true });
    // Events that it has not reached yet are skipped too.
    const wentLive = await tx.run(sql`update daybook_listener set state = 'live', heard_seq = ${last}, heard_to = null
      where seq = ${seq} and state = 'catching_up'`);
    if (wentLive > 0) await stampListeners(tx);
    return { seq: last, at: null };
  }
  await findLive(tx, name, 'skip to "now", or wait until it is live');
  if (typeof to !== "object") throw invalid('skip to "now", { time } or { event: id }');
  const { starts_seq: seq, starts_at: at } = await positionOf(tx, to, `the skip of "${name}"`);
  return at === null ? { seq, at } : { seq: last, at };
}

type Slice = { readonly name: string; readonly after: number; readonly bound: Bound };
type Waiting = { id: string; seq: number; status: string; event: number; published_at: number };

/** Each is ended by itself, which takes several statements. */
const skippedAtOnce = 100;

async function skipSlice(
  tx: Tx,
  ports: Ports,
  { name, after, bound }: Slice,
): Promise<{ cancelled: number; last: number | undefined }> {
  const rows =
    await tx.all<Waiting>(sql`select job.id, line.seq, line.status, line.kind_seq as event, event.published_at
    from daybook_line line join daybook_job job on job.seq = line.seq join daybook_event event on event.seq = line.kind_seq
    where line.kind = 'delivery' and line.kind_seq > ${after} and line.kind_seq <= ${bound.seq} and line.kind is not null
      and job.tenant_id = ${tx.tenant} and job.name = ${deliveryName(name)}
    order by line.kind_seq limit ${skippedAtOnce}`);
  const skipped = rows.filter(({ status, published_at: at }) => {
    return status !== "running" && (bound.at === null || at < bound.at);
  });
  let cancelled = 0;
  // All at once: one by one they would be locked in the order of their events (lock-order.ts).
  await lockJobs(
    tx,
    skipped.map(({ seq }) => ({ seq })),
  );
  for (const { id } of skipped) if (await cancelUnstarted(tx, ports, id)) cancelled++;
  return { cancelled, last: rows.at(-1)?.event };
}

export type RemoveOptions = {
  /** `"all"`: removes a listener for all tenants from each of them, and tenants that come later do not get it. */
  readonly tenants?: "all";
};

export type Removed = {
  /** How many deliveries waited, and were cancelled. */
  readonly cancelled: number;
};

/** Ends a listener; its name stays in the history. Nobody would run what waits for it, and it would keep its events in the book. */
async function removeListener(
  engine: Engine,
  tenant: string,
  name: string,
  options: RemoveOptions = {},
): Promise<Removed> {
  refuseUnknown(options, ["tenants"], "listeners.remove");
  const isAll = isForAll(options.tenants, "listeners.remove");
  const ended = await engine.store.write((tx) => endListener(tx, name, isAll), { tenant });
  let cancelled = 0;
  for (const { of, seq, last } of ended) {
    await engine.store.write((tx) => cancelCatchUp(tx, engine, seq), { tenant: of });
    cancelled += await cancelWaiting(engine, of, name, { seq: last, at: null });
  }
  return { cancelled };
}

/** One tenant's listener, and the last event that it could have a delivery of. */
type EndedListener = { readonly of: string; readonly seq: number; readonly last: number };

async function endListener(tx: Tx, name: string, isAll: boolean): Promise<EndedListener[]> {
  await closeListeners(tx);
  const row = await findListener(tx, name);
  const theirs = isAll ? sql`or (for_all = 1 and name = ${name} and state <> 'removed')` : sql``;
  const rows = await tx.all<{ of: string; seq: number }>(sql`update daybook_listener
    set state = 'removed', removed_at = ${tx.now}, heard_to = null, updated_at = ${tx.now}
    where seq = ${row.seq} ${theirs} returning tenant_id as "of", seq`);
  await stampListeners(tx);
  const ended: EndedListener[] = [];
  for (const each of rows) if (each.of !== newTenants) ended.push({ ...each, last: await lastSeq(tx, each.of) });
  return ended.toSorted((a, b) => a.seq - b.seq);
}

// A program may have registered the listener again by now, and that one needs its job.
async function cancelCatchUp(tx: Tx, ports: Ports, seq: number): Promise<void> {
  const job = await tx.get<{
    id: string;
  }>(sql`select job.id from daybook_line line join daybook_job job on job.seq = line.seq
    join daybook_listener listener on listener.seq = line.kind_seq
    where line.kind = ${catchUpKind} and line.kind_seq = ${seq} and line.kind is not null and listener.state = 'removed'`);
  if (job !== undefined) await cancelUnstarted(tx, ports, job.id);
}
