// The live half of one open book: its bus, what feeds it from the book, and what keeps its runs.
import { invalid } from "../../core/error.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import type { Store } from "../../storage/store.ts";
import { openRunWriter } from "../../telemetry/run-writer.ts";
import type { SessionKey } from "../../telemetry/session.ts";
import type { Event } from "../define.ts";
import type { EventRow } from "../event.ts";
import { lookUp, type EventsRoom } from "../events.ts";
import { fittingPayload } from "../prepare.ts";
import { checkTopic } from "../topic.ts";
import { openLiveBus, type LiveAttachment, type LiveBus, type LiveListener } from "./bus.ts";
import type { LiveDefinition } from "./define.ts";
import { onFacts } from "./ears.ts";
import { followPublished } from "./follow.ts";
import { toLiveEvent } from "./heard-row.ts";
import { lastSaid } from "./last-said.ts";
import type { LiveContext } from "./live-context.ts";
import { createWaitingRoom } from "./waiting-room.ts";

export type Live = {
  readonly bus: LiveBus;
  /** Resolves once it hears what every process publishes. */
  attach(definition: LiveDefinition, tenant: string): Promise<LiveAttachment>;
  /** Cancels what runs, waits for its end, and writes down what is not yet written. */
  close(): Promise<void>;
};

export type LiveWiring = {
  readonly store: Store;
  readonly session: () => SessionKey;
  readonly contextFor: (context: LiveContext) => unknown;
  /** Told when runs are on disk. */
  readonly runsWritten?: () => void;
};

export function openLive({ store, session, contextFor, runsWritten }: LiveWiring): Live {
  const { clock, ids } = store;
  const writer = openRunWriter(store, session, runsWritten);
  const bus = openLiveBus({ clock, ids, writer, session, contextFor });
  const later = createWaitingRoom(
    clock,
    (event: EventRow) => bus.wants(event.tenant_id, event.topic) && void bus.dispatch(toLiveEvent(event)),
    () => writer.tooBusy(1),
  );
  // A book without live listeners reads nothing for them.
  let following: ReturnType<typeof followPublished> | undefined;
  let forgetFacts: (() => void) | undefined;

  return {
    bus,
    async attach(definition, tenant) {
      following ??= followPublished(store, {
        wants: bus.wants,
        hear: (event) => later.until(event.available_at, event),
      });
      await following;
      forgetFacts ??= onFacts(ids, { tenants: bus.tenants, wants: bus.wants, hear: (fact) => void bus.dispatch(fact) });
      const attachment = bus.attach(definition, tenant);
      if (definition.immediate) {
        for (const event of await lastSaid(store, definition, tenant)) attachment.catchUp(event);
      }
      return attachment;
    },
    async close() {
      (await following?.catch(() => undefined))?.stop();
      forgetFacts?.();
      later.close();
      await bus.close();
      await writer.drain();
    },
  };
}

export type LiveVerbs = {
  /** Says something to the live listeners of this process. It is not stored, and durable listeners do not hear it. Returns
   *  how many listeners heard it; their handlers have begun by then.
   *
   *  ```ts
   *  book.events.emit("motion.hall", { moving: true });
   *  ``` */
  emit<Input>(event: Event<Input, unknown>, payload: NoInfer<Input>): number;
  emit(topic: string, payload?: unknown): number;
  /** The live listeners of this process, and what became of what they heard. */
  live(): LiveListener[];
};

export function liveVerbs(live: Live | undefined, room: EventsRoom, tenant: string): LiveVerbs {
  return {
    emit(event: Event | string, payload?: unknown) {
      const instead = "it may be undone or run again; emit after it, or use tx.events.publish";
      refuseInsideUnit("book.events.emit", room.engine.store, instead);
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
