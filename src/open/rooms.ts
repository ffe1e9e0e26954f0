// The rooms of one open book, wired together: what the book, its transactions and its handlers are made of.
import { callJobName } from "../calls/call.ts";
import type { CallsParts } from "../calls/calls.ts";
import type { CallsRoom } from "../calls/room.ts";
import type { AppsHere } from "../apps/apps.ts";
import type { AnyApp } from "../apps/define.ts";
import { invalid } from "../core/error.ts";
import { isEvent, type AnyEvent, type AnyListener } from "../events/define.ts";
import type { EventsRoom } from "../events/events.ts";
import type { LiveDefinition } from "../events/live/define.ts";
import type { Live } from "../events/live/live.ts";
import { listenerJob } from "../events/listen.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { Engine } from "../jobs/engine.ts";
import type { EnqueueTogether } from "../jobs/enqueue.ts";
import type { AnyRecordType } from "../records/define/definition.ts";
import type { RecordRoom } from "../records/room.ts";
import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import type { AnySchedule } from "../schedules/options.ts";
import type { ScheduleWriter } from "../schedules/write-definitions.ts";
import type { Ticker } from "../schedules/ticker.ts";
import type { Store } from "../storage/store.ts";
import type { Attachment } from "../telemetry/attach.ts";
import type { RollUp } from "../telemetry/rollup/roll-up.ts";

export type Rooms = {
  readonly store: Store;
  readonly attachment: Attachment | undefined;
  readonly jobs: Engine;
  /** Enqueues jobs without keys, those of the same moment in one unit. */
  readonly enqueue: EnqueueTogether;
  readonly calls: CallsRoom;
  /** Adds ended runs to the rollups. */
  readonly rollUp: RollUp;
  /** Writes the program's own schedules. */
  readonly scheduled: ScheduleWriter;
  readonly events: EventsRoom;
  /** Undefined where nothing runs. */
  readonly live: Live | undefined;
  /** The apps that this process runs, and whose they are; undefined where nothing runs. */
  readonly apps: { readonly here: AppsHere; readonly tenant: string } | undefined;
  readonly records: RecordRoom;
  /** False: names that this book does not know may be enqueued, and nothing runs here. */
  readonly worker: WorkerOptions | false;
  readonly workers: Set<Worker>;
  /** Ends looking for a clock that is right again. */
  readonly stopMending: () => void;
  /** Fires schedules, once somebody works here. */
  ticker?: Ticker;
  /** Set once somebody closes the book; everybody else who does waits for the same end. */
  closing?: Promise<void>;
};

// What belongs to a book and is none of its verbs: nobody sees it who lists or copies the book.
const inside = Symbol("rooms");

export function keepRooms<Book extends object>(book: Book, rooms: Rooms): Book {
  return Object.defineProperty(book, inside, { value: rooms });
}

export function roomsOf(book: object): Rooms {
  const { [inside]: rooms } = book as { readonly [inside]?: Rooms };
  if (rooms === undefined) throw invalid("this is no book: give what open() or a context gave you");
  return rooms;
}

/** What the verbs of calls work with. */
export function callsParts({ calls, jobs, worker }: Rooms): CallsParts {
  return { room: calls, ports: jobs, sends: worker !== false };
}

/** What a program may list in `use`. */
export type Definition = AnyJob | AnySchedule | AnyEvent | AnyListener | LiveDefinition | AnyRecordType | AnyApp;

/** The jobs of `use` by name; a name that stands for two is refused. */
export function collectDefinitions(use: readonly Definition[]): Map<string, AnyJob> {
  const found = new Map<string, AnyJob>();
  for (const each of use.flatMap(reached)) {
    const known = found.get(each.name);
    if (each.name === callJobName) throw invalid(`"${callJobName}" is the job that makes calls: rename yours`);
    if (known !== undefined && known !== each) throw invalid(`two jobs in "use" are named "${each.name}": rename one`);
    found.set(each.name, each);
  }
  for (const each of collectListeners(use).map(listenerJob)) {
    if (found.has(each.name)) throw invalid(`"${each.name}" is the name of a listener's deliveries: rename the job`);
    found.set(each.name, each);
  }
  return found;
}

/** The listeners of `use`; a name that stands for two is refused. */
export function collectListeners(use: readonly Definition[]): readonly AnyListener[] {
  const found = new Map<string, AnyListener>();
  for (const each of use) {
    if (each.kind !== "listener") continue;
    if (found.get(each.name) !== undefined && found.get(each.name) !== each) {
      throw invalid(`two listeners in "use" are named "${each.name}": rename one`);
    }
    found.set(each.name, each);
  }
  return [...found.values()];
}

/** The live listeners of `use`; they share their names with the durable ones. */
export function collectLive(use: readonly Definition[]): readonly LiveDefinition[] {
  const found = new Map<string, LiveDefinition>();
  const durable = new Set(collectListeners(use).map(({ name }) => name));
  for (const each of use) {
    if (each.kind !== "live") continue;
    if ((found.get(each.name) ?? each) !== each || durable.has(each.name)) {
      throw invalid(`two listeners in "use" are named "${each.name}": rename one`);
    }
    found.set(each.name, each);
  }
  return [...found.values()];
}

/** The events of `use`, those that its listeners hear and its schedules publish, by topic. */
export function collectEvents(use: readonly Definition[]): Map<string, AnyEvent> {
  const found = new Map<string, AnyEvent>();
  const heard = [...collectListeners(use), ...collectLive(use)].flatMap(({ events }) => events);
  const said = use.flatMap((each) =>
    each.kind === "schedule" && isEvent(each.options.event) ? each.options.event : [],
  );
  for (const each of [...use.filter((one) => one.kind === "event"), ...heard, ...said]) {
    const known = found.get(each.topic);
    if (known !== undefined && known !== each) {
      throw invalid(`two events in "use" have the topic "${each.topic}": keep one definition`);
    }
    found.set(each.topic, each);
  }
  return found;
}

/** A job, or the job that a schedule fires, if it is given by its definition. */
function reached(definition: Definition): readonly AnyJob[] {
  if (definition.kind === "job") return [definition];
  if (definition.kind !== "schedule") return [];
  const { job } = definition.options;
  return job === undefined || typeof job === "string" ? [] : [job];
}

/** The schedules of `use`; a name that stands for two is refused. */
export function collectSchedules(use: readonly Definition[]): readonly AnySchedule[] {
  const found = new Map<string, AnySchedule>();
  for (const each of use) {
    if (each.kind !== "schedule") continue;
    if (found.get(each.name) !== undefined && found.get(each.name) !== each) {
      throw invalid(`two schedules in "use" are named "${each.name}": rename one`);
    }
    found.set(each.name, each);
  }
  return [...found.values()];
}

/** The entities and relations of `use` by name, with the entities that relations connect. */
export function collectRecordTypes(use: readonly Definition[]): Map<string, AnyRecordType> {
  const found = new Map<string, AnyRecordType>();
  const add = (each: AnyRecordType): void => {
    const known = found.get(each.name);
    if (known !== undefined && known !== each)
      throw invalid(`two records in "use" are named "${each.name}": rename one`);
    found.set(each.name, each);
    if (each.kind === "relation") [each.from, each.to].forEach(add);
  };
  for (const each of use) if (each.kind === "entity" || each.kind === "relation") add(each);
  return found;
}
