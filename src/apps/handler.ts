// The user's function as the rooms below call it: its errors are told to whoever asked for them, and an instance knows
// what of it still runs.
import { describeError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import type { ErrorPlace, OnError } from "./define.ts";

export type Handler = (first: unknown, context: HandlerContext) => unknown;

/** What this room reads of the contexts of jobs and of live listeners. */
type HandlerContext = {
  readonly signal: AbortSignal;
  readonly runId?: string;
  readonly job?: { readonly runId: string };
};

/** An error handler failed itself. */
export const errorHandlerFailed = defineFact<ErrorPlace & { message: string }>("app.error_handler_failed");

/** A setup failed, so that nothing of the instance runs. */
export const setupFailed = defineFact<ErrorPlace & { message: string }>("app.setup_failed");

/** States that a setup failed. Where neither an `onError` nor anybody else hears of it, the process itself is told: an app that
 *  is not there must not be found out by what it has not done. */
export function tellSetupFailed(onError: OnError | undefined, error: unknown, place: ErrorPlace): void {
  const { type, message, trace } = describeError(error);
  if (onError === undefined && !setupFailed.heard) {
    process.emitWarning(`app "${place.app}", instance ${place.instance}, could not be set up: ${type}: ${message}`, {
      ...{ type: "DaybookWarning", code: "DAYBOOK_APP_SETUP" },
      ...(trace === null ? {} : { detail: trace }),
    });
  }
  setupFailed.state({ ...place, message });
  tell(onError, error, place);
}

export type Watched = {
  readonly run: (first: never, context: never) => unknown;
  /** Tells of an error that happened before the handler began. */
  readonly failed: (error: unknown, runId: string | null) => void;
};

/** Runs that have begun and not ended. */
export type Running = Set<Promise<unknown>>;

export function watch(
  handler: Handler,
  {
    onError,
    place,
    timeout,
    running,
    acted,
  }: {
    readonly onError: OnError | undefined;
    readonly place: Omit<ErrorPlace, "runId">;
    /** Whether its runs may be ended by their timeout. */
    readonly timeout: boolean;
    /** Left out for a listener: the bus itself waits for what it runs. */
    readonly running?: Running;
    readonly acted: () => void;
  },
): Watched {
  const failed: Watched["failed"] = (error, runId) => {
    acted();
    tell(onError, error, { ...place, runId });
  };

  // An asynchronous function only where the handler is one: a handler that waits for nothing has ended when it returns.
  function run(first: unknown, context: HandlerContext): unknown {
    acted();
    const told = onError !== undefined && timeout ? tellTimeout(context, failed) : { is: false };
    try {
      const result = handler(first, context);
      return isThenable(result) ? settle(Promise.resolve(result), context, told) : result;
    } catch (error) {
      caught(error, context, told);
      throw error;
    }
  }

  async function settle(result: Promise<unknown>, context: HandlerContext, told: Told): Promise<unknown> {
    const over = (): void => void running?.delete(result);
    // Who was asked to end is waited for by whoever asked, and only for a while.
    if (running?.add(result) !== undefined) context.signal.addEventListener("abort", over, { once: true });
    try {
      return await result;
    } catch (error) {
      caught(error, context, told);
      throw error;
    } finally {
      over();
    }
  }

  // Who was cancelled was asked to end, and has not failed.
  function caught(error: unknown, context: HandlerContext, told: Told): void {
    if (onError === undefined || told.is || context.signal.aborted) return;
    failed(error, runOf(context));
  }

  return { run, failed };
}

type Told = { is: boolean };

// A handler may take no notice of its timeout, and then nothing is thrown.
function tellTimeout(context: HandlerContext, failed: Watched["failed"]): Told {
  const told = { is: false };
  context.signal.addEventListener(
    "abort",
    () => {
      const reason: unknown = context.signal.reason;
      if (!(reason instanceof Error && "code" in reason && reason.code === "timeout")) return;
      told.is = true;
      failed(reason, runOf(context));
    },
    { once: true },
  );
  return told;
}

function runOf({ runId, job }: HandlerContext): string | null {
  return runId ?? job?.runId ?? null;
}

/** An error handler that fails is stated as a fact and stops nothing. */
export function tell(onError: OnError | undefined, error: unknown, place: ErrorPlace): void {
  const fail = (cause: unknown): void => errorHandlerFailed.state({ ...place, message: describeError(cause).message });
  try {
    const result = onError?.(error, place);
    if (isThenable(result)) Promise.resolve(result).catch(fail);
  } catch (cause) {
    fail(cause);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
