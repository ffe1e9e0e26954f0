// What a user does with schedules, on the book and in a transaction.
import type { Ports } from "../jobs/kind.ts";
import { invalid } from "../core/error.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import { knownJob, type ReadRows } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Within } from "../jobs/jobs.ts";
import { backfillSchedule, triggerSchedule, type Backfilled, type Triggered } from "./fire-by-hand.ts";
import { keepTarget, mergeOptions, type ScheduleChanges } from "./merge-options.ts";
import { checkSchedule, checkWhen, type Policies, type ScheduleOptions } from "./options.ts";
import type { TimingInput, TimingOptions } from "./timing/timing.ts";
import { pruneDecisions, type PruneDecisions, type PrunedDecisions } from "./prune-decisions.ts";
import { previewFires, type FirePreview } from "./preview.ts";
import { listDecisions, listSchedules, readOne, toSchedule } from "./read-schedule.ts";
import type { DecisionPage, ScheduleFilter, SchedulePage, ScheduleRecord } from "./read-schedule.ts";
import { timingOf } from "./schedule.ts";
import { readTemplateIn, type LookUp, type ReadTemplate } from "./target.ts";
import { whySchedule, type Why } from "./why.ts";
import { countedFrom } from "./once-in.ts";
import { findSchedule } from "./find-schedule.ts";
import { pauseSchedule, removeSchedule, resumeSchedule } from "./steer-schedule.ts";
import { createSchedule, editSchedule } from "./write-schedule.ts";

export type Made = ScheduleRecord & {
  /** Set when nobody has hosted the job yet: it fires, and its jobs wait for a program that lists it. Also when it has a
   *  limit that could not be counted. */
  readonly warning: string | null;
};

export type ScheduleVerbs = {
  /** Makes a schedule that lives in the book; for one that lives in code see `schedule()`.
   *
   *  ```ts
   *  await book.schedules.create("receipts", { daily: "07:00", zone: "Europe/Madrid", job: sendReceipt, params: { orderId: "o-17" } });
   *  ``` */
  create<Input>(name: string, options: ScheduleOptions<Input>): Promise<Made>;
  /** Changes what it names; the rest stays. An edited schedule never catches up on slots before the edit. */
  edit(name: string, changes: ScheduleChanges): Promise<Made>;
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Fires once, now. */
  trigger(name: string): Promise<Triggered>;
  /** Fires the slots of a stretch of the past that were not fired. */
  backfill(name: string, from: TimeInput, to: TimeInput, options?: { readonly dryRun?: boolean }): Promise<Backfilled>;
};

/** When, without what. */
export type PreviewTiming = TimingInput & TimingOptions & Pick<Policies, "jitter">;

export type PreviewOptions = {
  readonly count?: number;
  /** The zone of whoever looks; default UTC. */
  readonly zone?: string;
  readonly after?: TimeInput;
  /** Changes that are not saved. */
  readonly edit?: ScheduleChanges;
};

export type Schedules = ScheduleVerbs & {
  get(name: string): Promise<ScheduleRecord>;
  /** By name. */
  list(filter?: ScheduleFilter): Promise<SchedulePage>;
  /** What was made of each slot, the newest first. */
  decisions(name: string, filter?: ScheduleFilter): Promise<DecisionPage>;
  /** Why it did, or did not, run at a time. */
  why(name: string, at: TimeInput): Promise<Why>;
  /** Removes old decisions. The schedules go on as they are, and fire nothing again. */
  prune(options: PruneDecisions): Promise<PrunedDecisions>;
  /** The next fires of a schedule, of one that is being written, or of one as an edit would make it. */
  preview(what: string | ScheduleOptions | PreviewTiming, options?: PreviewOptions): Promise<FirePreview[]>;
};

export function scheduleVerbs(
  engine: Pick<Engine, "definitions" | "store" | keyof Ports>,
  within: Within,
  read?: ReadRows,
): ScheduleVerbs {
  const lookUp: LookUp = (name) => knownJob(engine, name, read);
  const readTemplate: ReadTemplate = (template) => within((tx) => readTemplateIn(tx)(template));
  const around = { readTemplate, prepareEvent: engine.announce?.prepareEvent };
  return {
    async create(name: string, options: ScheduleOptions<never>) {
      refuseTenants(name, options);
      const checked = await checkSchedule(name, options, lookUp, around);
      const row = await within((tx) => createSchedule(tx, name, checked));
      return { ...toSchedule(row), warning: checked.warning };
    },
    async edit(name, changes) {
      refuseTenants(name, changes);
      const old = await within((tx) => findSchedule(tx, name));
      const checked = keepTarget(old, changes, await checkSchedule(name, mergeOptions(old, changes), lookUp, around));
      const edit = { checked, revision: old.revision };
      const row = await within((tx) => editSchedule(tx, name, edit));
      return { ...toSchedule(row), warning: checked.warning };
    },
    pause: (name, note) => within((tx) => pauseSchedule(tx, name, note ?? null)),
    resume: (name) => within((tx) => resumeSchedule(tx, name)),
    remove: (name) => within((tx) => removeSchedule(tx, name)),
    trigger: (name) => within((tx) => triggerSchedule(tx, engine, name)),
    async backfill(name, from, to, options = {}) {
      refuseUnknown(options, ["dryRun"], "backfill");
      const stretch = { from: timeMs(from, "from"), to: timeMs(to, "to"), dryRun: options.dryRun ?? false };
      return within((tx) => backfillSchedule(tx, engine, { name, ...stretch }));
    },
  };
}

// Whoever makes one at run time acts for one tenant, and has no say over the others.
function refuseTenants(name: string, options: object): void {
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
    prune: (options) => pruneDecisions(store, tenant, options),
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
    if (options.edit === undefined) return previewFires(timingOf(row), row, { after, count, zone });
    const checked = await checkSchedule(what, mergeOptions(row, options.edit), (name) => knownJob(engine, name), {
      readTemplate: async () => undefined,
      prepareEvent: engine.announce?.prepareEvent,
    });
    const edited = countedFrom(store.clock.now(), checked);
    return previewFires(edited.timing, { ...row, ...edited }, { after, count, zone });
  }
  // What it would fire need not be known yet.
  const checked = checkWhen("preview", what, store.clock.now());
  return previewFires(checked.timing, { id: "preview", ...checked }, { after, count, zone });
}
