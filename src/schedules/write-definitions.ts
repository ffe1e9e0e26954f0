// Writes the schedules of a program into the book: those that are new or have changed. What is missing from a program is
// simply not its own: it stays as it is.
import { isDaybookError } from "../core/error.ts";
import type { Engine } from "../jobs/engine.ts";
import type { AnySchedule } from "./define.ts";
import { checkSchedule, type CheckedSchedule } from "./options.ts";
import { readTemplateIn, type ReadTemplate } from "./target.ts";
import { upsertSchedule } from "./write-schedule.ts";

const triesMax = 5;

export async function writeSchedules(
  { store, definitions }: Pick<Engine, "store" | "definitions">,
  tenant: string,
  schedules: readonly AnySchedule[],
): Promise<void> {
  if (schedules.length === 0) return;
  const readTemplate: ReadTemplate = (name) => store.write((tx) => readTemplateIn(tx)(name), { tenant });
  const all: [string, CheckedSchedule][] = [];
  for (const { name, options } of schedules) {
    all.push([name, await checkSchedule(name, options, (job) => definitions.get(job), readTemplate)]);
  }
  for (let tries = 1; ; tries++) {
    try {
      await store.write(
        async (tx) => {
          for (const [name, checked] of all) await upsertSchedule(tx, name, checked);
        },
        { tenant },
      );
      return;
    } catch (error) {
      // Another process has just made one of them: the next look finds it.
      if (!isDaybookError(error) || error.code !== "conflict" || tries >= triesMax) throw error;
    }
  }
}
