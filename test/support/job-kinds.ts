// The jobs that the processes of these tests run. What their handlers do is written into a ledger outside of the book.
import { systemClock } from "../../src/core/clock.ts";
import { command, job, type JobContext, type UserTx } from "../../src/index.ts";
import type { Ledger } from "./job-ledger.ts";

export type KindParts = {
  readonly ledger: Ledger;
  /** Says that a handler has begun. */
  readonly began: (of: { name: string; jobId: string }) => void;
  /** Says that a handler's signal was aborted. */
  readonly aborted: (of: { jobId: string; cause: unknown }) => void;
  /** Resolves when the test lets the handlers go on. */
  readonly gate: () => Promise<void>;
};

type Work = { readonly key?: string; readonly ms?: number };

export const lossesForKills = 1000;

export function jobKinds({ ledger, began, aborted, gate }: KindParts) {
  const of = ({ job: { id, runId } }: JobContext, key?: string): { jobId: string; runId: string; key?: string } => ({
    jobId: id,
    runId,
    ...(key === undefined ? {} : { key }),
  });
  async function work({ key, ms = 0 }: Work, context: JobContext): Promise<void> {
    ledger.note("start", of(context, key));
    if (ms > 0) await systemClock.sleep(ms);
    ledger.note("end", of(context, key));
  }
  async function wait(context: JobContext): Promise<void> {
    ledger.note("start", of(context));
    began({ name: context.job.name, jobId: context.job.id });
    await gate();
    ledger.note("end", of(context));
  }

  return {
    plain: job("plain", { losses: lossesForKills, run: work }),
    keyed: job("keyed", {
      losses: lossesForKills,
      limit: { key: (params: Work) => params.key ?? "", concurrency: 1 },
      run: work,
    }),
    /** In three steps, of which one commits by itself. */
    staged: job("staged", {
      losses: lossesForKills,
      async run({ ms }: Work, context) {
        ledger.note("start", of(context));
        const first = await context.step("first", () => 1);
        if (ms !== undefined) await systemClock.sleep(ms);
        const second = await context.step.write("second", () => first + 1);
        const third = await context.step("third", () => second + 1);
        ledger.note("end", of(context));
        return third;
      },
    }),
    noop: job("noop", {
      run(_params: Work, context) {
        ledger.note("start", of(context));
        ledger.note("end", of(context));
      },
    }),
    neighbour: job("neighbour", { run: work }),
    /** Kills the process it runs in. */
    poison: job("poison", {
      run(_params, context) {
        ledger.note("start", of(context));
        process.kill(process.pid, "SIGKILL");
        return new Promise(() => undefined);
      },
    }),
    /** Waits at the gate, deaf to its signal. */
    held: job("held", { run: (_params, context) => wait(context) }),
    /** Never ends, whatever its signal says. */
    deaf: job("deaf", {
      run(_params, { job: { name, id: jobId } }) {
        began({ name, jobId });
        return new Promise<void>(() => void setInterval(String, 1000));
      },
    }),
    /** Takes a while after the gate, and minds its signal. */
    slow: job("slow", {
      async run(_params, context) {
        await wait(context);
        await systemClock.sleep(50);
        context.signal.throwIfAborted();
      },
    }),
    /** Waits at the gate and leaves its effect together with its completion. */
    late: job("late", {
      async run(_params, context) {
        await wait(context);
        await context.finish(
          (tx) => tx.sql`insert into effect (job_id, pid) values (${context.job.id}, ${process.pid})`,
        );
      },
    }),
    effect: job("effect", {
      losses: lossesForKills,
      async run({ name }: { name: string }, context) {
        ledger.note("start", of(context));
        await context.step("look", () => name);
        await context.finish(
          (tx) => tx.sql`insert into effect (name, job_id, pid) values (${name}, ${context.job.id}, ${process.pid})`,
        );
      },
    }),
    /** A job of a group: fails in its first `fails` attempts, then leaves its effect together with its completion. */
    member: job("member", {
      losses: lossesForKills,
      backoff: ["1ms"],
      async run({ name, fails = 0 }: { name: string; fails?: number }, context) {
        ledger.note("start", of(context, name));
        await context.step("look", () => name);
        if (context.attempt <= fails) throw new Error(`attempt ${context.attempt} of ${name} fails`);
        await context.finish(
          (tx) => tx.sql`insert into effect (name, job_id, pid) values (${name}, ${context.job.id}, ${process.pid})`,
        );
      },
    }),
    /** Five steps, of which the second and the fourth leave their effect in the book, and so does its end. Each result says
     *  which run it comes from. */
    stepped: job("stepped", {
      losses: lossesForKills,
      async run({ name }: { name: string }, context) {
        const { step, finish } = context;
        const { id, runId } = context.job;
        const leave = (tx: UserTx, key: string): Promise<unknown> =>
          tx.sql`insert into effect (name, job_id, pid) values (${key}, ${id}, ${process.pid})`;
        const results: { runId: string; place: number }[] = [];
        for (const place of [0, 1, 2, 3, 4]) {
          const key = `${name}/${place}`;
          const done =
            place % 2 === 1
              ? step.write(`step ${place}`, (tx) => leave(tx, key).then(() => ({ runId, place })))
              : step(`step ${place}`, () => (ledger.note("start", of(context, key)), { runId, place }));
          results.push(await done);
        }
        return finish((tx) => leave(tx, `${name}/end`).then(() => results));
      },
    }),
    /** A program that reports to a test. */
    program: command("program", { argv: [process.execPath, "{script}", "{socket}", "{role}"] }),
    /** Ends when it is asked to, and not before. */
    listening: job("listening", {
      run(_params, context) {
        const { signal } = context;
        ledger.note("start", of(context));
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            const reason = signal.reason as Error & { details?: { cause?: unknown } };
            aborted({ jobId: context.job.id, cause: reason.details?.cause });
            reject(reason);
          });
          began({ name: "listening", jobId: context.job.id });
        });
      },
    }),
  };
}

/** A definition for those who only enqueue. */
export const ofOthers = (name: string): ReturnType<typeof job> => job(name, { run: () => undefined });
