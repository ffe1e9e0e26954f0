// Writes the schedules of a program into the book: those that are new or have changed. What is missing from a program is
// simply not its own: it stays as it is.
//
// One for all tenants is a schedule of each of them: with its own cursor, decisions, failures and pause. So nothing that
// fires, decides or explains needs to know of it, and a tenant that comes later gets its own when it is noticed.
import { isDaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { knownJob } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import { type AnySchedule, checkSchedule, type CheckedSchedule } from "./options.ts";
import { lockSchedule } from "./schedule.ts";
import { readTemplateIn, type ReadTemplate } from "./target.ts";
import { upsertSchedule } from "./write-schedule.ts";

const triesMax = 5;

export type ScheduleWriter = {
  /** Writes all of them: for the tenant of the program, and those for all tenants for everybody who is known. */
  writeAll(): Promise<void>;
  /** Writes those for all tenants for whoever has become known since. */
  writeForNewTenants(): Promise<void>;
};

export function createScheduleWriter(
  { store, definitions, announce }: Pick<Engine, "store" | "definitions" | "announce">,
  tenant: string,
  schedules: readonly AnySchedule[],
): ScheduleWriter {
  const written = new Set<string>([tenant]);
  const forAll = schedules.filter(({ options }) => options.tenants === "all");
  const readTemplate: ReadTemplate = (name) => store.write((tx) => readTemplateIn(tx)(name), { tenant });

  const around = { readTemplate, prepareEvent: announce?.prepareEvent };

  async function check(some: readonly AnySchedule[]): Promise<[string, CheckedSchedule][]> {
    const all: [string, CheckedSchedule][] = [];
    for (const { name, options } of some) {
      all.push([name, await checkSchedule(name, options, (job) => knownJob({ store, definitions }, job), around)]);
    }
    return all;
  }

  async function write(to: string, all: readonly [string, CheckedSchedule][]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await store.write(
          async (tx) => {
            for (const [name, checked] of all) {
              if (to === tenant || !(await isTheirOwn(tx, name))) await upsertSchedule(tx, name, checked);
            }
          },
          { tenant: to },
        );
        return;
      } catch (error) {
        // Another process has just made one of them: the next look finds it.
        if (!isDaybookError(error) || error.code !== "conflict" || tries >= triesMax) throw error;
      }
    }
  }

  async function writeForNewTenants(): Promise<void> {
    if (forAll.length === 0) return;
    // A tenant is known once it has a queue, a template or a schedule.
    const known = await store.readHeavy<{ tenant_id: string }>(sql`select tenant_id from daybook_lane
      union select tenant_id from daybook_job_template union select tenant_id from daybook_schedule`);
    const fresh = known.map((row) => row.tenant_id).filter((each) => !written.has(each));
    if (fresh.length === 0) return;
    const all = await check(forAll);
    for (const each of fresh) {
      await write(each, all);
      written.add(each);
    }
  }

  return {
    async writeAll() {
      if (schedules.length === 0) return;
      await write(tenant, await check(schedules));
      await writeForNewTenants();
    },
    writeForNewTenants,
  };
}

// What a tenant has made by hand under that name is not taken from it.
async function isTheirOwn(tx: Tx, name: string): Promise<boolean> {
  const row = await lockSchedule(tx, name);
  return row !== undefined && row.removed_at === null && row.source === "api";
}
