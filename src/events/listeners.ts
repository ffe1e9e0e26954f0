// Listeners as people see them: who hears what, how far behind they are, and whether anybody runs them.
import { DaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import type { Engine } from "../jobs/engine.ts";
import { pauseName, resumeName } from "../jobs/gate.ts";
import type { StartFrom } from "./define.ts";
import { topicsOf } from "./listener-index.ts";
import { deliveryName, type ListenerRow } from "./listener.ts";
import { findListener, removeListener, rewindListener, skipListener } from "./steer-listener.ts";
import type { RemoveOptions, SkipTo } from "./steer-listener.ts";

export type ListenerRecord = {
  readonly name: string;
  readonly topics: readonly string[];
  /** `catching_up` while what was said before its start is brought to it. */
  readonly state: "live" | "catching_up";
  readonly ordered: boolean;
  readonly attempts: number;
  readonly queue: string;
  readonly startedFrom: string;
  readonly registeredAt: number;
  /** Whether it is one of each tenant. */
  readonly forAllTenants: boolean;
  /** Whether a session that lives runs it. It collects either way. */
  readonly hosted: boolean;
  readonly paused: { readonly at: number; readonly note: string | null } | null;
  readonly lag: Lag;
  readonly deadLetters: number;
};

/** What is not finished: deliveries that wait or run, and what was said but not brought to it yet. */
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
  /** Holds its deliveries back. It goes on collecting. */
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** Delivers everything from a position on once more. */
  rewind(name: string, to: Exclude<StartFrom, "now">): Promise<void>;
  /** Passes over what waits before a position (default all of it). Dead letters stay. */
  skip(name: string, to?: SkipTo): Promise<{ readonly skipped: number }>;
  /** Ends it: nothing more is collected for it, until a program registers it again. */
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

type Row = ListenerRow & {
  hosted: number | null;
  paused_at: number | null;
  paused_note: string | null;
  dead: number;
};

async function readListeners(store: Store, tenant: string): Promise<ListenerRecord[]> {
  const rows = await store.readHeavy<Row>(sql`select listener.*, paused.paused_at, paused.note as paused_note,
      (select 1 from daybook_session_host session_host join daybook_session session on session.seq = session_host.session_seq
        where session.status = 'running' and session_host.name = 'listener:' || listener.name limit 1) as hosted,
      (select count(*) from daybook_dead_letter dead_letter where dead_letter.tenant_id = listener.tenant_id
        and dead_letter.listener_seq = listener.seq and dead_letter.ended_at is null) as dead
    from daybook_listener listener left join daybook_paused_name paused
      on paused.tenant_id = listener.tenant_id and paused.name = 'listener:' || listener.name
    where listener.tenant_id = ${tenant} and listener.state <> 'removed' order by listener.name`);
  const open = await store.readHeavy<{ name: string; events: number; oldest: number }>(sql`select job.name,
      count(*) as events, min(event.published_at) as oldest
    from daybook_line line join daybook_job job on job.seq = line.seq join daybook_event event on event.seq = line.kind_seq
    where line.kind = 'delivery' and line.kind is not null and job.tenant_id = ${tenant} group by job.name`);
  const lags = new Map(open.map((each) => [each.name, each]));
  const records: ListenerRecord[] = [];
  for (const row of rows) {
    const ahead = row.state === "catching_up" ? await unheard(store, row) : { events: 0, oldest: null };
    records.push(toRecord(row, store.clock.now(), [lags.get(deliveryName(row.name)), ahead]));
  }
  return records;
}

type Behind = { readonly events: number; readonly oldest: number | null };

// Whether its patterns match is known when it comes to them, so this is what it may still have to hear.
async function unheard(store: Store, row: ListenerRow): Promise<Behind> {
  const [found] =
    await store.readHeavy<Behind>(sql`select count(*) as events, min(published_at) as oldest from daybook_event
    where tenant_id = ${row.tenant_id} and seq > ${row.heard_seq} and published_at >= ${row.starts_at ?? 0}`);
  return found ?? { events: 0, oldest: null };
}

function toRecord(row: Row, now: number, behind: readonly (Behind | undefined)[]): ListenerRecord {
  const oldest = Math.min(now, ...behind.map((each) => each?.oldest ?? now));
  return {
    name: row.name,
    topics: topicsOf(row),
    state: row.state === "catching_up" ? "catching_up" : "live",
    ordered: row.ordered === 1,
    attempts: row.attempts,
    queue: row.queue,
    startedFrom: row.starts_from,
    registeredAt: row.registered_at,
    forAllTenants: row.for_all === 1,
    hosted: row.hosted !== null,
    paused: row.paused_at === null ? null : { at: row.paused_at, note: row.paused_note },
    lag: { events: behind.reduce((sum, each) => sum + (each?.events ?? 0), 0), seconds: (now - oldest) / 1000 },
    deadLetters: row.dead,
  };
}
