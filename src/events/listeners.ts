// Listeners as people see them: what each hears, how far behind it is, and whether a session runs it.
import { DaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import type { Engine } from "../jobs/engine.ts";
import { pauseName, resumeName } from "../jobs/gate.ts";
import type { StartFrom } from "./define.ts";
import { topicsOf } from "./listener-index.ts";
import { deliveryName } from "./listener.ts";
import { findListener, removeListener, rewindListener, skipListener } from "./steer-listener.ts";
import type { RemoveOptions, SkipTo } from "./steer-listener.ts";

export type ListenerRecord = {
  readonly name: string;
  readonly topics: readonly string[];
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
  /** Cancels the deliveries that wait before a position (default all of them). Dead letters stay. */
  skip(name: string, to?: SkipTo): Promise<{ readonly skipped: number }>;
  /** Ends it: it collects nothing more until a program registers it again. */
  remove(name: string, options?: RemoveOptions): Promise<void>;
};

export function listenerVerbs(engine: Engine, tenant: string): Listeners {
  const { store } = engine;
  const write = <T>(unit: (tx: Tx) => Promise<T>): Promise<T> => store.write(unit, { tenant });
  const get = async (name: string): Promise<ListenerRecord> => {
    const found = (await readListeners(store, tenant)).find((each) => each.name === name);
    if (found === undefined)
      throw new DaybookError("not_found", `there is no listener "${name}"`, { details: { name } });
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
    remove: (name, options) => write((tx) => removeListener(tx, name, options)),
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
  const rows = await store.readHeavy<Row>(sql`select listener.name, listener.topics, listener.state, listener.ordered,
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
