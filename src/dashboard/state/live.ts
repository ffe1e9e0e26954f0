// What happens, as the server tells it: one stream for the page. Whoever shows something says which facts concern it, and is told
// once in a while that some came.
import { signal } from "@preact/signals";
import { streamFacts } from "../../client/stream.ts";
import { afterAnywhere, everyAnywhere, waitAnywhere } from "../../core/anywhere.ts";
import { isLoggedOut, tenant, wire } from "./book.ts";

export type Topic = "job.created" | "run.ended" | "event.published" | "schedule.decided" | "record.committed";

export const liveState = signal<"connecting" | "connected" | "reconnecting">("connecting");
export const isPaused = signal(false);
/** Facts that came in the last whole second. */
export const factsPerSecond = signal(0);

type Hearer = { readonly topics: readonly Topic[]; readonly hear: () => void };

const hearers = new Set<Hearer>();
let heard = 0;
let stop: AbortController | undefined;

export function onFacts(topics: readonly Topic[], hear: () => void): () => void {
  const hearer = { topics, hear };
  hearers.add(hearer);
  return () => void hearers.delete(hearer);
}

export function startLive(): void {
  stop?.abort();
  const own = new AbortController();
  stop = own;
  void follow(own.signal);
}

everyAnywhere(1000, () => {
  factsPerSecond.value = heard;
  heard = 0;
});

async function follow(signal: AbortSignal): Promise<void> {
  const from = {
    ...wire(),
    fetch: async (request: Request) => {
      if (liveState.value !== "connecting") liveState.value = "reconnecting";
      const response = await fetch(request);
      if (response.ok && liveState.value === "reconnecting") tell(new Set(everyTopic));
      if (response.ok) liveState.value = "connected";
      return response;
    },
  };
  while (!signal.aborted) {
    try {
      const came = new Set<Topic>();
      for await (const { name } of streamFacts(from, { signal })) {
        heard += 1;
        for (const topic of name === "reset" ? everyTopic : [name as Topic]) came.add(topic);
        isGathering ||= gather(came);
      }
    } catch {
      if (signal.aborted) return;
      liveState.value = "reconnecting";
    }
    await waitAnywhere(isLoggedOut.value ? 5000 : 1000);
  }
}

let isGathering = false;

function gather(came: Set<Topic>): true {
  afterAnywhere(gatherMs, () => {
    isGathering = false;
    tell(came);
    came.clear();
  });
  return true;
}

/** Facts come in bursts; whoever hears of them reads once for all of a burst. */
const gatherMs = 150;

const everyTopic: readonly Topic[] = [
  "job.created",
  "run.ended",
  "event.published",
  "schedule.decided",
  "record.committed",
];

function tell(topics: ReadonlySet<Topic>): void {
  for (const { topics: wanted, hear } of hearers) if (wanted.some((topic) => topics.has(topic))) hear();
}

tenant.subscribe(() => {
  if (stop !== undefined) startLive();
});
