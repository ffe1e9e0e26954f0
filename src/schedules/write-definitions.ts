// Writes a program's schedules into the book: the new ones and those that have changed. A schedule that the program does not list
// stays as it is.
//
// A schedule for all tenants is one schedule of each tenant, with its own cursor, decisions, failures and pause. So the code that
// fires, decides or explains need not know about it, and a tenant that comes later gets its own when it is noticed.
import { isDaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { Engine } from "../jobs/engine.ts";
import { checkSchedule, type AnySchedule, type CheckedSchedule } from "./options.ts";
import { lockSchedule } from "./schedule.ts";
import { readTemplateIn, aroundOf } from "./target.ts";
import { upsertSchedule } from "./write-schedule.ts";

const triesMax = 5;

export type ScheduleWriter = {
  /** Writes all schedules: for the program's tenant, and those for all tenants for every known tenant. */
  writeAll(): Promise<void>;
  /** Writes the schedules for all tenants for tenants that have become known since. */
  writeForNewTenants(): Promise<void>;
};

export function createScheduleWriter(
  engine: Pick<Engine, "store" | "definitions" | "announce">,
  tenant: string,
  schedules: readonly AnySchedule[],
): ScheduleWriter {
  const { store } = engine;
  const written = new Set<string>([tenant]);
  const forAll = schedules.filter(({ options }) => options.tenants === "all");
  const around = aroundOf(engine, (name) => store.write((tx) => readTemplateIn(tx, name), { tenant }));

  async function check(some: readonly AnySchedule[]): Promise<[string, CheckedSchedule][]> {
    const all: [string, CheckedSchedule][] = [];
    for (const { name, options } of some) {
      all.push([name, await checkSchedule(name, options, around)]);
    }
    return all;
  }

  async function write(to: string, all: readonly [string, CheckedSchedule][]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await store.write((tx) => upsertAll(tx, all, to === tenant), { tenant: to });
      } catch (error) {
        // Another process has just made one of them: the next try finds it.
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

async function upsertAll(tx: Tx, all: readonly [string, CheckedSchedule][], isOurs: boolean): Promise<void> {
  for (const [name, checked] of all) {
    const row = isOurs ? undefined : await lockSchedule(tx, name);
    // Another tenant's own schedule of that name stays.
    const isTheirs = row !== undefined && row.removed_at === null && row.source === "api";
    if (!isTheirs) await upsertSchedule(tx, name, checked);
  }
}
