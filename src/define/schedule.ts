// schedule(): a job or an event that is due again and again, defined in code.
import {
  defineSchedule,
  type AnySchedule,
  type DefinitionOptions,
  type ScheduleOptions,
} from "../schedules/options.ts";

/** Defines a schedule. Listed in `use`, it is written into the book by its name, and fires while a worker runs.
 *
 *  ```ts
 *  const greet = job("greet", { run: () => console.log("Good morning.") });
 *  const mornings = schedule("mornings", { daily: "07:00", zone: "Europe/Madrid", job: greet, params: {} });
 *  await using daily = await open(":memory:", { use: [greet, mornings] });
 *  ``` */
export function schedule<Input>(name: string, options: ScheduleOptions<Input> & DefinitionOptions): AnySchedule {
  return defineSchedule(name, options);
}
