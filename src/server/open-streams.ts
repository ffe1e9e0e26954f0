// Answers that go on: each ends when its reader leaves, when the server drains, and soon after its token is no longer valid.
import { systemClock, type Timer } from "../core/clock.ts";

export type OpenStreams = {
  /** `stillKnown` is asked every `lookMs`; the signal aborts once it answers false, or the server drains. */
  open(stillKnown: () => Promise<boolean>): OpenStream;
  readonly count: number;
  close(): void;
};

export type OpenStream = { readonly signal: AbortSignal; end(): void };

const lookMs = 2000;

export function createOpenStreams(): OpenStreams {
  const streams = new Map<AbortController, () => Promise<boolean>>();
  let timer: Timer | undefined;

  function lookLater(): void {
    timer ??= systemClock.after(lookMs, () => void look());
  }

  // All are asked at once: one that takes its time holds up no other.
  async function look(): Promise<void> {
    timer = undefined;
    const asked = [...streams].map(async ([controller, stillKnown]) => {
      // What cannot be read for a moment proves nothing about the token.
      if (await stillKnown().catch(() => true)) return;
      streams.delete(controller);
      controller.abort();
    });
    await Promise.all(asked);
    if (streams.size > 0) lookLater();
  }

  return {
    get count() {
      return streams.size;
    },
    open(stillKnown) {
      const controller = new AbortController();
      streams.set(controller, stillKnown);
      lookLater();
      return { signal: controller.signal, end: () => void streams.delete(controller) };
    },
    close() {
      timer?.cancel();
      for (const controller of streams.keys()) controller.abort();
      streams.clear();
    },
  };
}
