// Sinks as people see them. They are listeners, seen by their own names, with when they last brought something out.
import { sinkPrefix } from "../calls/sink/broker.ts";
import { DaybookError, isDaybookError } from "../core/error.ts";
import { deliveryName } from "../events/listener.ts";
import { listenerVerbs, type Lag, type ListenerRecord, type Listeners } from "../events/listeners.ts";
import type { Engine } from "../jobs/engine.ts";
import { sql } from "../storage/sql.ts";

export type SinkRecord = Omit<ListenerRecord, "ordered"> & {
  /** When the last event that went out was acknowledged; null when none did, or when it is no longer kept. */
  readonly lastPublishedAt: number | null;
};

/** By the names of `sink(name, …)`. What else there is to do with a listener, `book.listeners` does by `sink:<name>`. */
export type Sinks = {
  get(name: string): Promise<SinkRecord>;
  /** By name. */
  list(): Promise<SinkRecord[]>;
  lag(name: string): Promise<Lag>;
  /** Lets nothing more out. It goes on collecting. */
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
};

export function sinkVerbs(engine: Engine, tenant: string): Sinks {
  const listeners: Listeners = listenerVerbs(engine, tenant);
  const named = async <T>(name: string, work: (listener: string) => Promise<T>): Promise<T> => {
    try {
      return await work(sinkPrefix + name);
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "not_found") throw error;
      throw new DaybookError("not_found", `there is no sink "${name}"`, { details: { name }, cause: error });
    }
  };
  const get = async (name: string): Promise<SinkRecord> =>
    withLast(engine, tenant, await named(name, (listener) => listeners.get(listener)));
  return {
    get,
    list: async () => {
      const all = (await listeners.list()).filter((each) => each.name.startsWith(sinkPrefix));
      return Promise.all(all.map((each) => withLast(engine, tenant, each)));
    },
    lag: async (name) => (await get(name)).lag,
    pause: (name, note) => named(name, (listener) => listeners.pause(listener, note)),
    resume: (name) => named(name, (listener) => listeners.resume(listener)),
  };
}

// From the newest job back to the first that went out: of a sink that works it is among the last.
async function withLast(
  { store }: Pick<Engine, "store">,
  tenant: string,
  { ordered: _ordered, ...listener }: ListenerRecord,
): Promise<SinkRecord> {
  const [last] = await store.readHeavy<{ at: number }>(sql`select ended_at as at from daybook_run
    where tenant_id = ${tenant} and kind = 'delivery' and status = 'success' and name = ${deliveryName(listener.name)}
    order by seq desc limit 1`);
  return { ...listener, name: listener.name.slice(sinkPrefix.length), lastPublishedAt: last?.at ?? null };
}
