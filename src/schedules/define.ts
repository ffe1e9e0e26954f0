// A definition in code: it is written into the book by its name when a program that works opens it.
import { invalid } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { checkTiming, type ScheduleOptions } from "./options.ts";

/** What a definition in code says beyond the schedule itself. */
export type DefinitionOptions = {
  /** The schedule is one of each tenant, also of those that come later, and its jobs are theirs. Default: it belongs to the
   *  tenant of `open`. */
  readonly tenants?: "all";
};

export type AnySchedule = {
  readonly kind: "schedule";
  readonly name: string;
  readonly options: ScheduleOptions & DefinitionOptions;
};

export function defineSchedule(name: string, options: AnySchedule["options"]): AnySchedule {
  checkName(name, "schedule name");
  checkTiming(name, options);
  const { tenants, template } = options;
  if (tenants !== undefined && tenants !== "all") {
    throw invalid(`schedule "${name}": tenants is ${quote(tenants)}; leave it out, or say "all"`);
  }
  if (tenants === "all" && template !== undefined) {
    throw invalid(`schedule "${name}" is for all tenants, and a template belongs to one of them: give "job"`);
  }
  return { kind: "schedule", name, options };
}
