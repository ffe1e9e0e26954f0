// The bus of one open book: its live listeners hear what this process emits and what any process publishes. The bus waits for
// nothing: `emit` returns as soon as every handler has begun.
import { AsyncLocalStorage } from "node:async_hooks";
import { currentCause } from "../../core/cause.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { unstoredEvent, refuseTooDeep, type LiveEvent } from "../event.ts";
import type { LiveDefinition } from "./define.ts";
import { startHearing, createRecent } from "./hearing.ts";
import type { Hearing, HearingCounts, Pending, Recent } from "./hearing.ts";
import type { LiveParts } from "./live-run.ts";
import { openPatternIndex, checkTopic, matchesTopic } from "../topic.ts";

export type LiveBus = {
  /** The listener hears from now on. A name that is taken is refused. */
  attach(definition: LiveDefinition, tenant: string): LiveAttachment;
  /** Hands an event to the live listeners of this process, without storing it. Returns how many listeners heard it. */
  emit(tenant: string, topic: string, payload: unknown): number;
  /** Hands a committed event to the live listeners. */
  dispatch(event: LiveEvent): number;
  /** Whether any listener would hear it. Ask before reading an event from the book. */
  readonly wants: (tenant: string, topic: string) => boolean;
  /** The tenants whose listeners hear the topic; a listener for all tenants counts for the tenant that attached it. */
  readonly tenants: (topic: string) => ReadonlySet<string>;
  list(tenant: string): LiveListener[];
  /** Hears nothing more and cancels all runs; resolves once they have ended. What is emitted from now on is heard by nobody. */
  quiet(): Promise<void>;
  /** Detaches all listeners, cancels their runs, and waits until these have ended. */
  close(): Promise<void>;
};

export type LiveAttachment = {
  /** Returns the events that the listener would have acted on later. */
  detach(): Promise<readonly Pending[]>;
  /** Hands it a past event, unless a later event of that topic has come since. */
  catchUp(event: LiveEvent): void;
};

export type LiveListener = HearingCounts & {
  readonly name: string;
  /** What it hears and when it acts, in words. */
  readonly hears: string;
};

type Attached = {
  readonly definition: LiveDefinition;
  readonly tenant: string;
  /** Its tenant; "" when it is for all tenants. */
  readonly scope: string;
  readonly order: number;
  /** By tenant: a listener for all tenants hears each tenant separately. */
  readonly hearings: Map<string, Hearing>;
};

// How many topics are remembered with their listeners. Most programs have fewer and publish each often.
const routesMax = 1000;

export function openLiveBus(parts: LiveParts): LiveBus {
  // By scope.
  const indexes = new Map<string, ReturnType<typeof openPatternIndex<Attached>>>();
  const attached = new Map<string, Attached>();
  const recent = new Map<string, Recent>();
  const routes = new Map<string, readonly Attached[]>();
  const heardIn = new Map<string, ReadonlySet<string>>();
  // A commit may start handlers: they run outside the transaction's async context.
  const outside = AsyncLocalStorage.snapshot();
  let order = 0;
  let quiet = false;
  let closed = false;

  function route(tenant: string, topic: string): readonly Attached[] {
    const key = `${tenant} ${topic}`;
    const known = routes.get(key);
    if (known !== undefined) return known;
    const own = indexes.get(tenant)?.match(topic) ?? [];
    const all = indexes.get("")?.match(topic) ?? [];
    const found = [...own, ...all].toSorted(
      (a, b) => b.definition.priority - a.definition.priority || a.order - b.order,
    );
    if (routes.size >= routesMax) routes.clear();
    routes.set(key, found);
    return found;
  }

  // Asked whenever a job ends, so the answer is remembered.
  function tenantsOf(topic: string): ReadonlySet<string> {
    const known = heardIn.get(topic);
    if (known !== undefined) return known;
    const found = new Set(indexes.values().flatMap((index) => [...index.match(topic)].map(({ tenant }) => tenant)));
    heardIn.set(topic, found);
    return found;
  }

  function forgetRoutes(): void {
    routes.clear();
    heardIn.clear();
  }

  function hearingOf(each: Attached, tenant: string): Hearing {
    let hearing = each.hearings.get(tenant);
    if (hearing === undefined) {
      hearing = startHearing(each.definition, parts, () => each.definition.allTenants || removeFromIndex(each));
      each.hearings.set(tenant, hearing);
    }
    return hearing;
  }

  function say(event: LiveEvent): number {
    if (quiet || closed) return 0;
    const { tenant, topic } = event;
    let known = recent.get(tenant);
    if (known === undefined) recent.set(tenant, (known = createRecent()));
    known.set(event);
    const listeners = route(tenant, topic);
    for (const each of listeners) hearingOf(each, tenant).hear(event);
    return listeners.length;
  }

  function hearRecent(each: Attached): void {
    const { topics, allTenants } = each.definition;
    const known = [...recent].filter(([tenant]) => allTenants || tenant === each.tenant);
    for (const event of known.flatMap(([, events]) => [...events.values()])) {
      if (topics.some((pattern) => matchesTopic(pattern, event.topic))) hearingOf(each, event.tenant).hear(event);
    }
  }

  function removeFromIndex(each: Attached): void {
    for (const pattern of each.definition.topics) indexes.get(each.scope)?.remove(pattern, each);
    forgetRoutes();
  }

  return {
    wants: (tenant, topic) => route(tenant, topic).length > 0,
    tenants: tenantsOf,
    attach(definition, tenant) {
      if (quiet || closed) throw new DaybookError("closed", "the book is closed or closing");
      const scope = definition.allTenants ? "" : tenant;
      const key = `${scope} ${definition.name}`;
      if (attached.has(key)) {
        throw invalid(`a live listener named "${definition.name}" is attached already: detach it, or rename one`);
      }
      const each: Attached = { definition, tenant, scope, order: order++, hearings: new Map() };
      attached.set(key, each);
      let index = indexes.get(scope);
      if (index === undefined) indexes.set(scope, (index = openPatternIndex()));
      for (const pattern of definition.topics) index.add(pattern, each);
      forgetRoutes();
      if (definition.immediate) hearRecent(each);
      return {
        async detach() {
          if (attached.get(key) !== each) return [];
          removeFromIndex(each);
          attached.delete(key);
          return stopAll([each]);
        },
        catchUp(event) {
          const known = recent.get(event.tenant)?.get(event.topic);
          if (known === undefined && attached.get(key) === each) hearingOf(each, event.tenant).hear(event);
        },
      };
    },
    emit(tenant, topic, payload) {
      checkTopic(topic);
      if (closed) throw new DaybookError("closed", "the book is closed or closing");
      const cause = currentCause();
      const event = unstoredEvent({ tenant, topic, payload, at: parts.clock.now() }, cause);
      refuseTooDeep(topic, event.chainDepth, cause?.event);
      return say(event);
    },
    dispatch: (event) => outside(say, event),
    list(tenant) {
      return [...attached.values()]
        .filter(({ scope }) => scope === "" || scope === tenant)
        .map((each) => ({
          name: each.definition.name,
          hears: each.definition.describe(),
          ...(each.hearings.get(tenant)?.counts ?? silent),
        }));
    },
    async quiet() {
      quiet = true;
      await stopAll(attached.values());
    },
    async close() {
      closed = true;
      await stopAll(attached.values());
      attached.clear();
      indexes.clear();
      recent.clear();
      forgetRoutes();
    },
  };
}

const silent: HearingCounts = { heard: 0, runs: 0, leftOut: 0, dropped: 0, running: 0, waiting: 0 };

async function stopAll(listeners: Iterable<Attached>): Promise<Pending[]> {
  const hearings = [...listeners].flatMap((each) => [...each.hearings.values()]);
  return (await Promise.all(hearings.map((hearing) => hearing.stop()))).flat();
}
