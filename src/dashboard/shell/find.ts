// Things by their id or name.
import type { IconName } from "../parts/icon.tsx";
import { href, segment } from "../state/url.ts";
import type { Choice } from "./palette.tsx";

export async function findThings(_text: string, _signal: AbortSignal): Promise<readonly Choice[]> {
  return [];
}

/** Where the page of a thing is. */
export function pageOf(kind: string, name: string): string {
  const bases: Readonly<Record<string, string>> = {
    job: "/jobs",
    run: "/runs",
    event: "/events",
    call: "/calls",
    group: "/groups",
    template: "/templates",
    schedule: "/schedules",
    listener: "/listeners",
    sink: "/sinks",
    queue: "/queues",
    app: "/apps",
    session: "/sessions",
    commit: "/commits",
    dead_letter: "/dead-letters",
  };
  return href(`${bases[kind] ?? "/jobs"}/${segment(name)}`);
}

export function iconOf(kind: string): IconName {
  const icons: Readonly<Record<string, IconName>> = { dead_letter: "dead", delivery: "listener", direct: "job" };
  const known = [
    "job",
    "run",
    "event",
    "call",
    "group",
    "template",
    "schedule",
    "listener",
    "sink",
    "queue",
    "app",
    "session",
    "commit",
    "record",
  ] as const;
  return icons[kind] ?? known.find((each) => each === kind) ?? "dot";
}
