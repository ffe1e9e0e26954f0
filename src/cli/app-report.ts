// What a program that runs apps says about them: that one runs, or why it does not.
import type { AppRecord } from "../apps/read-apps.ts";
import { count } from "../verbs/shown.ts";
import type { Problem } from "./apps-folder.ts";
import { errorLine, oneLine } from "./one-line.ts";

export type Tell = (text: string, object: Record<string, unknown>) => void;

export function tellProblem(tell: Tell, { file, message }: Problem): void {
  tell(`! ${oneLine(message, 500)}`, { type: "problem", file, message });
}

export function tellApp(tell: Tell, { key, instances, registrations }: AppRecord): void {
  const running = instances.filter(({ status }) => status === "running").length;
  const { listeners, schedules, jobs } = registrations;
  if (running > 0) {
    const what = [count(listeners, "listener"), count(schedules, "schedule"), count(jobs, "job")].join(", ");
    tell(`app ${key} runs: ${running} of ${count(instances.length, "instance")}, ${what}`, {
      type: "app",
      key,
      status: "running",
      running,
      instances: instances.length,
      registrations,
    });
  }
  for (const { index, status, error } of instances) {
    if (status !== "failed" || error === null) continue;
    tell(`! app ${key}, instance ${index}, failed: ${errorLine(error, 500)}`, {
      type: "app",
      key,
      status: "failed",
      instance: index,
      error,
    });
  }
}
