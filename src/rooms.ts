// The rooms of one open book, wired together: what the book, its transactions and its handlers are made of.
import { callJobName } from "./calls/call.ts";
import type { CallsParts } from "./calls/calls.ts";
import type { CallsRoom } from "./calls/room.ts";
import { invalid } from "./core/error.ts";
import type { AnyJob } from "./jobs/define.ts";
import type { Engine } from "./jobs/engine.ts";
import type { Worker, WorkerOptions } from "./jobs/worker-options.ts";
import type { AnySchedule } from "./schedules/define.ts";
import type { Ticker } from "./schedules/ticker.ts";
import type { Store } from "./storage/store.ts";
import type { Attachment } from "./telemetry/attach.ts";

export type Rooms = {
  readonly store: Store;
  readonly attachment: Attachment | undefined;
  readonly jobs: Engine;
  readonly calls: CallsRoom;
  /** False: names that this book does not know may be enqueued, and nothing runs here. */
  readonly worker: WorkerOptions | false;
  readonly workers: Set<Worker>;
  /** Fires schedules, once somebody works here. */
  ticker?: Ticker;
  /** Set once somebody closes the book; everybody else who does waits for the same end. */
  closing?: Promise<void>;
};

/** What the verbs of calls work with. */
export function callsParts({ calls, jobs, worker }: Rooms): CallsParts {
  return { room: calls, hooks: jobs.hooks, sends: worker !== false };
}

/** What a program may list in `use`. */
export type Definition = AnyJob | AnySchedule;

/** The jobs of `use` by name; a name that stands for two is refused. */
export function collectDefinitions(use: readonly Definition[]): Map<string, AnyJob> {
  const found = new Map<string, AnyJob>();
  for (const each of use) {
    if (each.kind !== "job") continue;
    const known = found.get(each.name);
    if (each.name === callJobName) throw invalid(`"${callJobName}" is the job that makes calls: rename yours`);
    if (known !== undefined && known !== each) throw invalid(`two jobs in "use" are named "${each.name}": rename one`);
    found.set(each.name, each);
  }
  return found;
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
