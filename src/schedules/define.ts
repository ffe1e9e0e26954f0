// A definition in code: it is written into the book by its name when a program that works opens it.
import { checkName } from "../core/name.ts";
import { checkTiming, type ScheduleOptions } from "./options.ts";

export type AnySchedule = { readonly kind: "schedule"; readonly name: string; readonly options: ScheduleOptions };

export function defineSchedule(name: string, options: ScheduleOptions): AnySchedule {
  checkName(name, "schedule name");
  checkTiming(name, options);
  return { kind: "schedule", name, options };
}
