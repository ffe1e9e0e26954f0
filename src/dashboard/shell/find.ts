// Things by their id, the beginning of one, or their name.
import type { VerbAnswer } from "../../client/verbs.ts";
import type { IconName } from "../parts/icon.tsx";
import { ask } from "../state/book.ts";
import { href, segment } from "../state/url.ts";

type Found = VerbAnswer<"book.find">["items"][number];

export type Choice = { readonly text: string; readonly hint: string; readonly icon: IconName; readonly href: string };

export async function findThings(text: string, signal: AbortSignal): Promise<readonly Choice[]> {
  const { items } = await ask("book.find", { text }, { signal });
  return items.map((found) => ({
    text: found.title,
    hint: [found.kind.replace("-", " "), found.status].filter((each) => each !== null).join(", "),
    icon: icons[found.kind],
    href: pageOf(found),
  }));
}

const icons: Readonly<Record<Found["kind"], IconName>> = {
  job: "job",
  run: "run",
  event: "event",
  call: "call",
  group: "group",
  template: "template",
  schedule: "schedule",
  listener: "listener",
  sink: "sink",
  "dead-letter": "dead",
  definition: "job",
  queue: "queue",
  app: "app",
  session: "session",
  operation: "settings",
  record: "record",
  commit: "commit",
};

const folders: Readonly<Partial<Record<Found["kind"], string>>> = {
  "dead-letter": "dead-letters",
  queue: "queues",
  app: "apps",
};

/** Where the page of a thing is. */
function pageOf({ kind, id, type }: Found): string {
  if (kind === "record") return href(`/records/${segment(type ?? "")}/${segment(id)}`);
  if (kind === "definition") return href("/jobs", { q: `name:${id}` });
  if (kind === "operation") return href("/settings", { tab: "operations" });
  if (kind === "sink") return href("/sinks");
  return href(`/${folders[kind] ?? `${kind}s`}/${segment(id)}`);
}
