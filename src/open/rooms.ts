// The rooms of one open book, wired together: what the book, its transactions and its handlers are made of.
import type { AccessRoom } from "../access/access.ts";
import type { CallsParts } from "../calls/calls.ts";
import type { CallsRoom } from "../calls/room.ts";
import type { AppsHere } from "../apps/apps.ts";
import { DaybookError, invalid } from "../core/error.ts";
import type { EventsRoom } from "../events/events.ts";
import type { Live } from "../events/live/live.ts";
import type { Engine } from "../jobs/engine.ts";
import type { EnqueueTogether } from "../jobs/enqueue.ts";
import type { RecordRoom } from "../records/room.ts";
import type { Log } from "./log.ts";
import type { Worker, WorkerOptions } from "../jobs/worker/start-worker.ts";
import type { ScheduleWriter } from "../schedules/write-definitions.ts";
import type { Ticker } from "../schedules/ticker.ts";
import type { Store } from "../storage/store.ts";
import type { Attachment } from "../telemetry/attach.ts";
import type { RollUp } from "../telemetry/rollup/roll-up.ts";

export type Rooms = {
  readonly store: Store;
  readonly access: AccessRoom;
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
  readonly log: Log;
  /** Ends looking for a clock that is right again. */
  readonly stopMending: () => void;
  /** Fires schedules, once a worker was started here. */
  ticker?: Ticker;
  /** Set by the first caller of close; the others wait for the same end. */
  closing?: Promise<void>;
};

/** The rooms of a store's book, which open() keeps there once it has made them all. */
export function roomsIn(store: Store): Rooms {
  return store.keep<Rooms>("rooms", () => {
    throw new DaybookError("internal", "the book was used before all of its rooms were made");
  });
}

// What belongs to a book and is none of its verbs: listing or copying the book does not show it.
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
