// What a page shows: the answer of a verb, read again when facts say that it may have changed.
import { useEffect, useRef, useState } from "preact/hooks";
import type { VerbAnswer, VerbInput, VerbKey } from "../../client/verbs.ts";
import { afterAnywhere, elapsedMs, everyAnywhere } from "../../core/anywhere.ts";
import { DaybookError } from "../../core/daybook-error.ts";
import { ask, isLoggedOut, tenant } from "./book.ts";
import { isPaused, onFacts, type Topic } from "./live.ts";

export type Shown<Answer> = {
  readonly data: Answer | undefined;
  /** The last failure; what was read before it is still shown. */
  readonly error: DaybookError | undefined;
  readonly isReading: boolean;
  /** Reads it again now. */
  again(): void;
  /** The same, and resolves when it is there. */
  read(): Promise<void>;
};

export type Watch = {
  /** Facts after which the answer may be another one. */
  readonly topics?: readonly Topic[];
  /** Reads again after so long, for what no fact tells. */
  readonly everyMs?: number;
  /** Nothing is asked while this is true. */
  readonly off?: boolean;
};

const kept = new Map<string, unknown>();
const keptMax = 60;

/** `input` may be made anew at each render: it is compared by what it says. */
export function useVerb<Key extends VerbKey>(
  verb: Key,
  input: VerbInput<Key>,
  watch: Watch = {},
): Shown<VerbAnswer<Key>> {
  const { topics, everyMs, off = false } = watch;
  const key = JSON.stringify([verb, input, tenant.value]);
  const [, render] = useState(0);
  const state = useRef<State<VerbAnswer<Key>>>({ key: "", data: undefined, error: undefined, isReading: true });
  const reader = useRef<Reader | undefined>(undefined);

  if (state.current.key !== key) {
    // The answer before stays in sight until the next one is there, unless another thing is looked at.
    const before = kept.get(key) as VerbAnswer<Key> | undefined;
    const isSibling = state.current.key.split(",")[0] === key.split(",")[0] && isList(state.current.data);
    state.current = {
      key,
      data: before ?? (isSibling ? state.current.data : undefined),
      error: undefined,
      isReading: true,
    };
  }

  useEffect(() => {
    if (off) return undefined;
    const made = createReader(async (signal) => {
      state.current = { ...state.current, isReading: true };
      try {
        const data = await ask(verb, input, { signal });
        if (signal.aborted) return;
        keep(key, data);
        state.current = { key, data, error: undefined, isReading: false };
      } catch (error) {
        if (signal.aborted) return;
        state.current = { ...state.current, error: asError(error), isReading: false };
      }
      render((count) => count + 1);
    });
    reader.current = made;
    void made.now();
    const stopHearing = topics === undefined ? undefined : onFacts(topics, made.soon);
    const stopTimer = everyMs === undefined ? undefined : everyAnywhere(everyMs, made.soon);
    const onShow = (): void => {
      if (!document.hidden) made.soon();
    };
    document.addEventListener("visibilitychange", onShow);
    const stopLogin = isLoggedOut.subscribe((is) => {
      if (!is && state.current.error !== undefined) void made.now();
    });
    return () => {
      stopHearing?.();
      stopTimer?.();
      stopLogin();
      document.removeEventListener("visibilitychange", onShow);
      made.end();
    };
  }, [key, off]);

  const { data, error, isReading } = state.current;
  return { data, error, isReading, again: () => void reader.current?.now(), read: async () => reader.current?.now() };
}

type State<Answer> = {
  readonly key: string;
  readonly data: Answer | undefined;
  readonly error: DaybookError | undefined;
  readonly isReading: boolean;
};

type Reader = { now(): Promise<void>; soon(): void; end(): void };

/** Reads one after the other, and rests between two that nobody asked for as long as they take, a second at least. */
function createReader(read: (signal: AbortSignal) => Promise<void>): Reader {
  let under: AbortController | undefined;
  let cancel: (() => void) | undefined;
  let restUntil = 0;
  let wanted = false;

  async function begin(): Promise<void> {
    cancel?.();
    cancel = undefined;
    under?.abort();
    const own = new AbortController();
    under = own;
    wanted = false;
    const from = elapsedMs();
    await read(own.signal);
    if (under !== own) return;
    under = undefined;
    restUntil = elapsedMs() + Math.max(1000, 3 * (elapsedMs() - from));
    if (wanted) soon();
  }

  function soon(): void {
    wanted = true;
    if (document.hidden || isPaused.value || under !== undefined || cancel !== undefined) return;
    cancel = afterAnywhere(Math.max(0, restUntil - elapsedMs()), () => void begin());
  }

  return {
    now: begin,
    soon,
    end() {
      cancel?.();
      under?.abort();
    },
  };
}

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, data);
  for (const oldest of kept.keys()) {
    if (kept.size <= keptMax) break;
    kept.delete(oldest);
  }
}

function isList(data: unknown): boolean {
  return typeof data === "object" && data !== null && "items" in data;
}

export function asError(error: unknown): DaybookError {
  return error instanceof DaybookError ? error : new DaybookError("internal", String(error), { cause: error });
}
