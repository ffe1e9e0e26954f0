// The live half of one open book: the bus, the events from the book that feed it, and the writer of its runs.
import type { Clock, Timer } from "../../core/clock.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { refuseVerb } from "../../storage/unit.ts";
import { anyOf } from "../../storage/word.ts";
import { openRunWriter } from "../../telemetry/run-writer.ts";
import type { SessionKey } from "../../telemetry/session.ts";
import { fittingPayload, type Event } from "../define.ts";
import { toLiveEvent, type EventRow, type LiveEvent } from "../event.ts";
import { lookUp, type EventsRoom } from "../events.ts";
import { localFeed } from "../listener-index.ts";
import { openLiveBus, type LiveAttachment, type LiveBus, type LiveListener } from "./bus.ts";
import type { LiveDefinition } from "./define.ts";
import { followPublished } from "./follow.ts";
import type { LiveParts } from "./live-run.ts";
import { checkTopic, matchesTopic } from "../topic.ts";

export type Live = {
  readonly bus: LiveBus;
  /** Resolves once it hears what every process publishes. */
  attach(definition: LiveDefinition, tenant: string): Promise<LiveAttachment>;
  /** Cancels the runs, waits until they have ended, and writes those that are not on disk yet. */
  close(): Promise<void>;
};

export type LiveWiring = {
  readonly store: Store;
  readonly session: () => SessionKey;
  readonly contextFor: LiveParts["contextFor"];
  /** Called when runs are on disk. */
  readonly runsWritten?: () => void;
};

export function openLive({ store, session, contextFor, runsWritten }: LiveWiring): Live {
  const { clock, ids } = store;
  const writer = openRunWriter(store, session, runsWritten);
  const bus = openLiveBus({ clock, ids, writer, session, contextFor });
  const later = createDelayed(
    clock,
    (event) => bus.wants(event.tenant_id, event.topic) && void bus.dispatch(toLiveEvent(event)),
    () => writer.tooBusy(1),
  );
  // A book without live listeners reads no events for them.
  let following: ReturnType<typeof followPublished> | undefined;

  return {
    bus,
    async attach(definition, tenant) {
      following ??= followPublished(store, { wants: bus.wants, hear: later.hear });
      await following;
      localFeed(store).facts ??= { tenants: bus.tenants, wants: bus.wants, hear: (fact) => void bus.dispatch(fact) };
      const attachment = bus.attach(definition, tenant);
      if (definition.immediate) {
        for (const event of await lastPublished(store, definition, tenant)) attachment.catchUp(event);
      }
      return attachment;
    },
    async close() {
      (await following?.catch(() => undefined))?.stop();
      localFeed(store).facts = undefined;
      later.close();
      await bus.close();
      await writer.drain();
    },
  };
}

export type LiveVerbs = {
  /** Hands an event to the live listeners of this process. It is not stored, and durable listeners do not hear it. Returns how
   *  many listeners heard it; their handlers have begun by then.
   *
   *  ```ts
   *  book.events.emit("motion.hall", { moving: true });
   *  ``` */
  emit<Input>(
    event: Event<Input, unknown> | string,
    ...given: undefined extends NoInfer<Input> ? [payload?: NoInfer<Input>] : [payload: NoInfer<Input>]
  ): number;
  /** The live listeners of this process, with their counts. */
  live(): LiveListener[];
};

export function liveVerbs(live: Live | undefined, room: EventsRoom, tenant: string): LiveVerbs {
  return {
    emit(event: Event | string, payload?: unknown) {
      const instead = "it may be undone or run again; emit after it, or use tx.events.publish";
      refuseVerb("book.events.emit", room.engine.store, instead);
      const { topic, schema } = lookUp(room, event);
      checkTopic(topic);
      const given = payload ?? null;
      const result = schema?.["~standard"].validate(given);
      if (result instanceof Promise) {
        result.catch(() => undefined);
        throw invalid(`the schema of "${topic}" does not answer at once, so it cannot be emitted: publish it`);
      }
      if (result !== undefined) fittingPayload(topic, result);
      return live?.bus.emit(tenant, topic, given) ?? 0;
    },
    live: () => live?.bus.list(tenant) ?? [],
  };
}

type Head = Pick<EventRow, "seq" | "tenant_id" | "topic">;

/** The last event in the book of each topic, for a listener that acts when it is attached. Topics have no index, because every
 *  publish would pay for it; so this reads only the latest events, off the event loop. */
async function lastPublished(
  store: Store,
  { topics, allTenants }: LiveDefinition,
  tenant: string,
): Promise<LiveEvent[]> {
  const ofTenant = allTenants ? sql`` : sql`and tenant_id = ${tenant}`;
  const heads = await store.readHeavy<Head>(sql`select seq, tenant_id, topic from daybook_event
    where available_at <= ${store.clock.now()} and replay_of is null ${ofTenant}
    order by seq desc limit ${limits.liveLookBackMax}`);
  const last = new Map<string, number>();
  for (const { seq, tenant_id, topic } of heads) {
    const key = `${tenant_id} ${topic}`;
    if (!last.has(key) && topics.some((pattern) => matchesTopic(pattern, topic))) last.set(key, seq);
  }
  if (last.size === 0) return [];
  const rows = await store.readHeavy<EventRow>(
    sql`select * from daybook_event where seq ${anyOf("integer", [...last.values()])} order by seq`,
  );
  return rows.map(toLiveEvent);
}

/** Holds events that were published for a later time, in memory: a process that opens the book after such an event was published
 *  does not hear it live. */
function createDelayed(clock: Clock, letGo: (event: EventRow) => void, full: () => void) {
  const timers = new Set<Timer>();
  return {
    hear(event: EventRow): void {
      const ms = event.available_at - clock.now();
      if (ms <= 0) return letGo(event);
      if (timers.size >= limits.liveDelayedMax) return full();
      const timer = clock.after(ms, () => {
        timers.delete(timer);
        letGo(event);
      });
      timers.add(timer);
    },
    close(): void {
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
  };
}
