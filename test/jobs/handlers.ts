// Handlers that a test holds in its hand: they say when they began and wait for what they are told.
import { job, type Job, type JobContext, type ManualClock } from "../../src/index.ts";
import type { JobOptions } from "../../src/jobs/define.ts";
import { whileTimePasses } from "../support/session-row.ts";

export type Held = {
  readonly context: JobContext;
  readonly params: unknown;
  succeed(result?: unknown): void;
  fail(error: unknown): void;
};

export type HeldJob = {
  readonly job: Job;
  /** The runs that began, in order. */
  readonly begun: Held[];
  /** Resolves once `count` runs have begun in all. */
  whenBegun(count: number): Promise<Held>;
};

type Options = Partial<Omit<JobOptions<unknown, unknown, JobContext>, "run">>;

/** A job whose runs end when the test says so, whatever their signal says. */
export function heldJob(name: string, options: Options = {}): HeldJob {
  const begun: Held[] = [];
  const waiting: { count: number; resolve(held: Held): void }[] = [];
  const definition = job(name, {
    ...(options as object),
    run: (params: unknown, context: JobContext) =>
      new Promise((resolve, reject) => {
        begun.push({ context, params, succeed: resolve, fail: reject });
        for (const each of waiting) if (begun.length >= each.count) each.resolve(begun[each.count - 1] as Held);
      }),
  });
  return {
    job: definition,
    begun,
    whenBegun: (count) =>
      new Promise((resolve) => {
        if (begun.length >= count) resolve(begun[count - 1] as Held);
        else waiting.push({ count, resolve });
      }),
  };
}

/** The run that begins as the `count`th, with a clock that is moved until it has: a worker notices by its clock what others
 *  have written. It is moved in the machine's own time, so that no slot of a schedule is passed meanwhile. */
export function begunBy(held: HeldJob, clock: ManualClock, count: number): Promise<Held> {
  return whileTimePasses(clock, held.whenBegun(count));
}

/** What `signal.reason` says, as the error that the run is recorded with. */
export function reasonOf(signal: AbortSignal): { code: string; cause: unknown } {
  const { code, details } = signal.reason as { code: string; details: Record<string, unknown> };
  return { code, cause: details["cause"] };
}
