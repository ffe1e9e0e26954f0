// The rooms of one open book, wired together: what the book, its transactions and its handlers are made of.
import { invalid } from "./core/error.ts";
import type { AnyJob } from "./jobs/define.ts";
import type { Engine } from "./jobs/engine.ts";
import type { AnyRecordType } from "./records/relation.ts";
import type { RecordRoom } from "./records/room.ts";
import type { Worker, WorkerOptions } from "./jobs/worker-options.ts";
import type { AnySchedule } from "./schedules/define.ts";
import type { Ticker } from "./schedules/ticker.ts";
import type { Store } from "./storage/store.ts";
import type { Attachment } from "./telemetry/attach.ts";

export type Rooms = {
  readonly store: Store;
  readonly attachment: Attachment | undefined;
  readonly jobs: Engine;
  readonly records: RecordRoom;
  /** False: names that this book does not know may be enqueued, and nothing runs here. */
  readonly worker: WorkerOptions | false;
  readonly workers: Set<Worker>;
  /** Fires schedules, once somebody works here. */
  ticker?: Ticker;
  /** Set once somebody closes the book; everybody else who does waits for the same end. */
  closing?: Promise<void>;
};

/** What a program may list in `use`. */
export type Definition = AnyJob | AnySchedule | AnyRecordType;

/** The jobs of `use` by name; a name that stands for two is refused. */
export function collectDefinitions(use: readonly Definition[]): Map<string, AnyJob> {
  const found = new Map<string, AnyJob>();
  for (const each of use) {
    if (each.kind !== "job") continue;
    const known = found.get(each.name);
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
