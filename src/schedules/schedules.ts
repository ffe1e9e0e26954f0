// The verbs of schedules, on the book and in a transaction.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import type { Store } from "../storage/store.ts";
import type { ReadRows } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import type { Ports } from "../jobs/kind.ts";
import { readBookZone } from "./book-zone.ts";
import { backfillSchedule, triggerSchedule, type Backfilled, type Triggered } from "./fire-by-hand.ts";
import { keepTarget, mergeOptions, checkSchedule, checkWhen, countedFrom, refuseOthers, withZone } from "./options.ts";
import type { ScheduleChanges, Policies, ScheduleOptions } from "./options.ts";
import { listDecisions, listSchedules, readOne, toSchedule, whySchedule } from "./read-schedule.ts";
import type { DecisionPage, ScheduleFilter, SchedulePage, ScheduleRecord, Why } from "./read-schedule.ts";
import { renameSchedule } from "./rename.ts";
import { findSchedule, offsetOf, type ScheduleRow } from "./schedule.ts";
import { readTemplateIn, aroundOf } from "./target.ts";
import { slotAt } from "./timing/slot.ts";
import { restoreTiming, type TimingInput, type TimingOptions, type Timing } from "./timing/timing.ts";
import { zoneOf } from "./timing/zone.ts";
import { pauseSchedule, removeSchedule, resumeSchedule, createSchedule, editSchedule } from "./write-schedule.ts";

export type Made = ScheduleRecord & {
  /** Set when no program has hosted the job yet: the schedule fires, and its jobs wait for a program that lists the job. Also set
   *  when the job has a limit that cannot be counted. */
  readonly warning: string | null;
};

export type ScheduleVerbs = {
  /** Makes a schedule in the book; for one in code see `schedule()`.
   *
   *  ```ts
   *  await book.schedules.create("receipts", { daily: "07:00", zone: "Europe/Madrid", job: sendReceipt, params: { orderId: "o-17" } });
   *  ``` */
  create<Input>(name: string, options: ScheduleOptions<Input>): Promise<Made>;
  /** Changes the given options; the rest stays. An edited schedule never catches up on slots before the edit. */
  edit(name: string, changes: ScheduleChanges): Promise<Made>;
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Gives a schedule another name. It stays the same schedule: its decisions, its cursor and its jobs are kept, so no slot is lost
   *  or fired twice. Runs keep the name under which they ran. One that is for all tenants is renamed for all of them at once, by the
   *  book that `open` returned (`forbidden` elsewhere). */
  rename(name: string, to: string): Promise<Made>;
  /** Fires once, now. */
  trigger(name: string): Promise<Triggered>;
  /** Fires the slots of a stretch of the past that were not fired. */
  backfill(name: string, from: TimeInput, to: TimeInput, options?: { readonly dryRun?: boolean }): Promise<Backfilled>;
};

/** When, without what. */
export type PreviewTiming = TimingInput & TimingOptions & Pick<Policies, "jitter">;

export type PreviewOptions = {
  readonly count?: number;
  /** The reader's zone; default UTC. */
  readonly zone?: string;
  readonly after?: TimeInput;
  /** An edit to preview; it is not saved. */
  readonly edit?: ScheduleChanges;
};

export type Schedules = ScheduleVerbs & {
  get(name: string): Promise<ScheduleRecord>;
  /** By name. */
  list(filter?: ScheduleFilter): Promise<SchedulePage>;
  /** The decision about each slot, the newest first. */
  decisions(name: string, filter?: ScheduleFilter): Promise<DecisionPage>;
  /** Why it did, or did not, run at a time. */
  why(name: string, at: TimeInput): Promise<Why>;
  /** The next fires of a schedule, of options that are not saved, or of a schedule after an edit. */
  preview(what: string | ScheduleOptions | PreviewTiming, options?: PreviewOptions): Promise<FirePreview[]>;
};

export function scheduleVerbs(
  engine: Pick<Engine, "definitions" | "store" | keyof Ports>,
  within: Within,
  read?: ReadRows,
  { whole } = { whole: false },
): ScheduleVerbs {
  const around = aroundOf(engine, (template) => within((tx) => readTemplateIn(tx, template)), read);
  return {
    async create(name: string, options: ScheduleOptions<never>) {
      refuseTenants(name, options);
      const checked = await checkSchedule(name, options, around);
      const row = await within((tx) => createSchedule(tx, name, checked));
      return { ...toSchedule(row), warning: checked.warning };
    },
    async edit(name, changes) {
      refuseTenants(name, changes);
      const old = await within((tx) => findSchedule(tx, name));
      const checked = keepTarget(old, changes, await checkSchedule(name, mergeOptions(old, changes), around));
      const edit = { checked, revision: old.revision };
      const row = await within((tx) => editSchedule(tx, name, edit));
      return { ...toSchedule(row), warning: checked.warning };
    },
    pause: (name, note) => within((tx) => pauseSchedule(tx, name, note ?? null)),
    resume: (name) => within((tx) => resumeSchedule(tx, name)),
    remove: (name) => within((tx) => removeSchedule(tx, name)),
    async rename(name, to) {
      const row = await within((tx) => renameSchedule(tx, name, to, whole));
      return { ...toSchedule(row), warning: row.source === "code" ? inCode(name, to) : null };
    },
    trigger: (name) => within((tx) => triggerSchedule(tx, engine, name)),
    async backfill(name, from, to, options = {}) {
      refuseUnknown(options, ["dryRun"], "backfill");
      const stretch = { from: timeMs(from, "from"), to: timeMs(to, "to"), dryRun: options.dryRun ?? false };
      return within((tx) => backfillSchedule(tx, engine, { name, ...stretch }));
    },
  };
}

function inCode(name: string, to: string): string {
  const order = `stop the programs that call it "${name}", rename it, start those that call it "${to}"`;
  return `it is defined in code, and a program that starts and still calls it "${name}" makes another one; the order that works: ${order}`;
}

// A caller at run time acts for one tenant, and has no say over the others.
function refuseTenants(name: string, options: object): void {
  refuseOthers(name, options);
  if (!("tenants" in options)) return;
  throw invalid(`schedule "${name}": "tenants" is for definitions in code: schedule(name, { …, tenants: "all" })`);
}

export function scheduleReads(engine: Engine, tenant: string): Omit<Schedules, keyof ScheduleVerbs> {
  const { store } = engine;
  return {
    get: async (name) => toSchedule(await readOne(store, tenant, name)),
    list: (filter = {}) => listSchedules(store, tenant, filter),
    decisions: (name, filter = {}) => listDecisions(store, tenant, name, filter),
    why: async (name, at) => whySchedule(store, await readOne(store, tenant, name), timeMs(at, "at")),
    preview: (what, options = {}) => preview(engine, store, tenant, what, options),
  };
}

async function preview(
  engine: Engine,
  store: Store,
  tenant: string,
  what: string | ScheduleOptions | PreviewTiming,
  options: PreviewOptions,
): Promise<FirePreview[]> {
  refuseUnknown(options, ["count", "zone", "after", "edit"], "preview");
  const { count = 10, zone = "UTC" } = options;
  const after = options.after === undefined ? store.clock.now() : timeMs(options.after, "after");
  if (typeof what === "string") {
    const row = await readOne(store, tenant, what);
    if (options.edit === undefined) return previewFires(restoreTiming(row), row, { after, count, zone });
    refuseOthers(what, options.edit);
    const around = aroundOf(engine, async () => undefined);
    const checked = await checkSchedule(what, mergeOptions(row, options.edit), around);
    const edited = countedFrom(store.clock.now(), checked);
    return previewFires(edited.timing, { ...row, ...edited }, { after, count, zone });
  }
  if (typeof what !== "object" || what === null) {
    throw invalid(
      `the schedule to preview is ${quote(what)}: give its name, or when it is due, such as { cron: "0 7 * * *" }`,
    );
  }
  // The target need not exist yet.
  const zoned = what.zone === undefined ? withZone(what, await readBookZone((of) => store.read(of))) : what;
  const checked = checkWhen("preview", zoned, store.clock.now());
  return previewFires(checked.timing, { id: "preview", ...checked }, { after, count, zone });
}

export type FirePreview = {
  /** Epoch milliseconds of the slot, and of the fire, which jitter makes later. */
  readonly at: number;
  readonly fireAt: number;
  /** The slot in the schedule's own zone. */
  readonly local: string;
  /** The same moment in the reader's zone. */
  readonly there: string;
  /** `gap`: the local time does not exist on that day, so the slot is moved. `ambiguous`: it exists twice. */
  readonly dst: "gap" | "ambiguous" | null;
};

function previewFires(
  timing: Timing,
  row: Pick<ScheduleRow, "id" | "jitter_ms"> & Partial<Pick<ScheduleRow, "max_fires" | "fires">>,
  { after, count, zone }: { readonly after: number; readonly count: number; readonly zone: string },
): FirePreview[] {
  checkCount(count, "count", 1, 1000);
  const there = zoneOf(zone);
  const offset = offsetOf(row);
  const fires: FirePreview[] = [];
  const most = Math.min(count, (row.max_fires ?? Number.POSITIVE_INFINITY) - (row.fires ?? 0));
  for (let slot = timing.next(after); slot !== null && fires.length < most; slot = timing.next(slot.at)) {
    const { at, local, dst } = slot;
    fires.push({ at, fireAt: at + offset, local, there: slotAt(there, at).local, dst });
  }
  return fires;
}
