// The numbers beside the pages, from one cheap answer.
import { useVerb } from "../state/use-verb.ts";
import type { Counts } from "./nav.tsx";

export function useCounts(): Counts {
  const { data } = useVerb("book.health", {}, { topics: ["job.created", "run.ended"], everyMs: 15_000 });
  if (data === undefined) return {};
  const { jobs, schedules, deadLetters, calls, listeners, sinks, sessionsRunning } = data;
  return {
    "/jobs": { count: jobs.running.count, tone: "busy" },
    "/queues": { count: jobs.queued.count, tone: "quiet" },
    "/schedules": { count: schedules.late.count, tone: "warn" },
    "/listeners": { count: listeners.count, tone: "warn" },
    "/dead-letters": { count: deadLetters.count, tone: "bad" },
    "/calls": { count: calls.running.count + calls.scheduled.count, tone: "quiet" },
    "/sinks": { count: sinks.count, tone: "warn" },
    "/sessions": { count: sessionsRunning, tone: "quiet" },
  };
}
