// Wraps a user's function for the rooms below: its errors go to `onError`, and the instance knows which of its runs go on.
import { currentCause, withCause, type Cause } from "../core/cause.ts";
import { describeError, type ErrorDescription } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { isThenable } from "../core/json.ts";
import { adviceOf } from "../core/retry.ts";
import type { Store } from "../storage/store.ts";
import type { ErrorPlace, OnError } from "./define.ts";

export type Handler = (first: unknown, context: HandlerContext) => unknown;

/** What this room needs of the contexts of jobs and of live listeners. */
type HandlerContext = {
  readonly signal: AbortSignal;
  readonly runId?: string;
  readonly job?: { readonly runId: string };
};

/** An `onError` function failed. */
export const errorHandlerFailed = defineFact<ErrorPlace & { message: string }>("app.error_handler_failed");

/** A setup failed, so nothing of the instance runs. */
export const setupFailed = defineFact<ErrorPlace & { message: string; at: string }>("app.setup_failed");

type SetupFailed = ErrorPlace & ErrorDescription & { readonly at: string };

/** An error escaped from a handler: a promise that nobody awaited, or a throw in a callback. */
export const errorEscaped = defineFact<ErrorPlace & { message: string }>("app.error_escaped");

/** Whether such an error fails its run and leaves the process going, as whoever works on the book has said. */
export type Strays = { failTheirRun: boolean };

export function straysOf(store: Pick<Store, "keep">): Strays {
  return store.keep("strays", () => ({ failTheirRun: false }));
}

/** States that a setup failed. If neither an `onError` nor a subscriber hears it, the process warns: otherwise the operator would only
 *  see that the app does nothing. */
export function tellSetupFailed(onError: OnError | undefined, error: unknown, failed: SetupFailed): void {
  const { type, message, trace, at, ...place } = failed;
  if (onError === undefined && !setupFailed.heard) {
    const what = `app "${place.app}", instance ${place.instance}, could not be set up at ${at}`;
    process.emitWarning(`${what}: ${type}: ${message}`, {
      type: "DaybookWarning",
      code: "DAYBOOK_APP_SETUP",
      ...(trace === null ? {} : { detail: trace }),
    });
  }
  setupFailed.state({ ...place, message, at });
  tell(onError, error, place);
}

export type Watched = {
  readonly run: (first: never, context: never) => unknown;
  /** Reports an error from before the handler began. */
  readonly failed: (error: unknown, runId: string | null) => void;
};

/** Runs that have begun and not ended. */
export type Running = Set<Promise<unknown>>;

type Watching = {
  readonly onError: OnError | undefined;
  readonly place: Omit<ErrorPlace, "runId">;
  /** Whether its runs have a timeout. */
  readonly timeout: boolean;
  /** The set of its unfinished runs; undefined when the bus waits for them. */
  readonly running: Running | undefined;
  /** Aborted when the instance stops. */
  readonly stopping: AbortSignal;
  readonly strays: Strays;
  readonly acted: () => void;
};

/** `fail` is there while the handler's promise is awaited. */
type Going = { fail?: ((error: unknown) => void) | undefined };

export function watch(handler: Handler, watching: Watching): Watched {
  const { onError, place, timeout, running, stopping, strays, acted } = watching;
  const failed: Watched["failed"] = (error, runId) => {
    acted();
    tell(onError, error, { ...place, runId });
  };

  // Not an async function: a handler that awaits nothing has ended when it returns.
  function run(first: unknown, context: HandlerContext): unknown {
    acted();
    const told = onError !== undefined && timeout ? tellTimeout(context, failed) : { is: false };
    const going: Going = {};
    const cause = currentCause();
    const stray = (error: unknown): boolean => {
      if (strays.failTheirRun) escaped(error, going, cause);
      return strays.failTheirRun;
    };
    try {
      const begin = (): unknown => handler(first, context);
      const result = cause === undefined ? begin() : withCause({ ...cause, stray }, begin);
      return isThenable(result) ? settle(Promise.resolve(result), context, told, going) : result;
    } catch (error) {
      caught(error, context, told);
      throw error;
    }
  }

  // What code of the handler throws where it cannot catch it is taken for thrown by the handler.
  async function settle(result: Promise<unknown>, context: HandlerContext, told: Told, going: Going): Promise<unknown> {
    const stray = new Promise<never>((_resolve, reject) => void (going.fail = reject));
    const over = (): void => void running?.delete(result);
    // An aborted run is waited for by the code that aborted it, and only for a while. Here that is the instance, when it stops.
    const aborted = (): void => void (stopping.aborted || over());
    if (running?.add(result) !== undefined) context.signal.addEventListener("abort", aborted, { once: true });
    try {
      return await Promise.race([result, stray]);
    } catch (error) {
      caught(error, context, told);
      throw error;
    } finally {
      going.fail = undefined;
      over();
    }
  }

  function escaped(error: unknown, { fail }: Going, cause: Cause | undefined): void {
    const { type, message, trace } = describeError(error);
    const where = { ...place, runId: cause?.runId ?? null };
    if (onError === undefined && !errorEscaped.heard) {
      const what = `an error escaped from "${place.registration}" of app "${place.app}", instance ${place.instance}`;
      process.emitWarning(`${what}; its run has failed, and the process goes on: ${type}: ${message}`, {
        type: "DaybookWarning",
        code: "DAYBOOK_APP_ERROR",
        ...(trace === null ? {} : { detail: trace }),
      });
    }
    errorEscaped.state({ ...where, message });
    if (fail !== undefined) return fail(error);
    cause?.late?.(error);
    failed(error, where.runId);
  }

  // A cancelled run was asked to end, and a skipped one had nothing to do: neither is an error.
  function caught(error: unknown, context: HandlerContext, told: Told): void {
    if (onError === undefined || told.is || context.signal.aborted || adviceOf(error)?.skip === true) return;
    failed(error, runOf(context));
  }

  return { run, failed };
}

type Told = { is: boolean };

// A handler may ignore its timeout and never throw, so the abort itself is reported.
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

/** Calls `onError`. If that fails, a fact states it and everything goes on. */
export function tell(onError: OnError | undefined, error: unknown, place: ErrorPlace): void {
  const fail = (cause: unknown): void => errorHandlerFailed.state({ ...place, message: describeError(cause).message });
  try {
    const result = onError?.(error, place);
    if (isThenable(result)) Promise.resolve(result).catch(fail);
  } catch (cause) {
    fail(cause);
  }
}
