// The numbers beside the pages, from one cheap answer.
import { useVerb } from "../state/use-verb.ts";
import type { Counts } from "./nav.tsx";

export function useCounts(): Counts {
  const { data } = useVerb("queues.list", {}, { topics: ["job.created", "run.ended"], everyMs: 15_000 });
  const queues = data?.items ?? [];
  const sum = (of: (queue: (typeof queues)[number]) => number): number =>
    queues.reduce((all, each) => all + of(each), 0);
  return {
    "/jobs": { count: sum(({ running }) => running), tone: "busy" },
    "/queues": { count: sum(({ queued }) => queued), tone: "quiet" },
  };
}
