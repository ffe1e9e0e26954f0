// Remote workers: programs in any language that run jobs of this book without opening it.
import { isPlain } from "../../core/json.ts";
import type { Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import type { Engine } from "../engine.ts";
import { attachWorker, leave, type AttachedWorker, type WorkerAttachOptions, type WorkerLeft } from "./attach.ts";
import type { WorkerGrant } from "./lease.ts";
import { pollJobs, type WorkerClaimOptions, type LeasedJob } from "./poll.ts";
import { extend, failLease, log, progress, settleLease } from "./report.ts";
import type {
  LeaseEnded,
  LeaseFailOptions,
  LeaseLogOptions,
  LeaseProgressOptions,
  LeaseRenewed,
  Said,
} from "./report.ts";

/** `grant` is what the token of a remote caller allows; a program that asks for itself leaves it out. */
export type Workers = {
  /** Makes a session for a worker that is no process of this book.
   *
   *  ```ts
   *  const { session } = await book.workers.attach({ names: ["resize"] });
   *  await book.jobs.enqueue("resize", { width: 80 });
   *  const [job] = await book.workers.claim(session, { wait: "10s" });
   *  if (job !== undefined) await book.workers.settle(job.lease, { bytes: 512 });
   *  ``` */
  attach(options: WorkerAttachOptions, grant?: WorkerGrant): Promise<AttachedWorker>;
  /** Claims jobs for it, and waits for the first one if asked to. Whose `signal` is aborted keeps none. */
  claim(
    session: string,
    options?: WorkerClaimOptions & { readonly signal?: AbortSignal },
    grant?: WorkerGrant,
  ): Promise<LeasedJob[]>;
  extend(lease: string, options?: { readonly lasts?: Duration }, grant?: WorkerGrant): Promise<LeaseRenewed>;
  progress(lease: string, options: LeaseProgressOptions, grant?: WorkerGrant): Promise<LeaseRenewed>;
  log(lease: string, options: LeaseLogOptions, grant?: WorkerGrant): Promise<LeaseRenewed>;
  settle(lease: string, result?: unknown, grant?: WorkerGrant): Promise<LeaseEnded>;
  fail(lease: string, options: LeaseFailOptions, grant?: WorkerGrant): Promise<LeaseEnded>;
  leave(session: string, grant?: WorkerGrant): Promise<WorkerLeft>;
};

export function workerVerbs(engine: Engine, tenant: string): Workers {
  const said = (lease: string, grant: WorkerGrant | undefined): Said => ({
    tenant,
    lease: checkText(lease, "lease"),
    grant,
  });
  return {
    async attach(options, grant) {
      refuseUnknown(options, ["names", "queues", "host", "pid", "metadata"], "workers.attach");
      return attachWorker(engine, tenant, options, grant);
    },
    async claim(session, options = {}, grant) {
      refuseUnknown(options, ["most", "wait", "lease", "names", "queues", "signal"], "workers.claim");
      const { signal, ...rest } = options;
      return pollJobs(engine, { tenant, session: checkText(session, "session"), grant }, rest, signal);
    },
    async extend(lease, options = {}, grant) {
      refuseUnknown(options, ["lasts"], "workers.extend");
      return extend(engine, said(lease, grant), options.lasts);
    },
    async progress(lease, options, grant) {
      refuseUnknown(options, ["done", "note"], "workers.progress");
      return progress(engine, said(lease, grant), options);
    },
    async log(lease, options, grant) {
      refuseUnknown(options, ["message", "level", "fields"], "workers.log");
      return log(engine, said(lease, grant), options);
    },
    settle: async (lease, result, grant) => settleLease(engine, said(lease, grant), result),
    async fail(lease, options, grant) {
      refuseUnknown(options, ["error", "retryable", "retryIn"], "workers.fail");
      checkError(options.error);
      return failLease(engine, said(lease, grant), options);
    },
    leave: async (session, grant) => leave(engine, tenant, checkText(session, "session"), grant),
  };
}

function checkText(value: unknown, what: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalid(`${what} is ${quote(value)}: give the text that the worker was given`);
}

/** `{ type, message, trace }`, of which only the message is needed. */
export function checkError(error: unknown, what = "error"): void {
  if (!isPlain(error) || typeof error["message"] !== "string") {
    throw invalid(`${what} is ${quote(error)}: give { "type": "ValueError", "message": "what was wrong" }`);
  }
  refuseUnknown(error, ["type", "message", "trace"], what);
  for (const name of ["type", "trace"]) {
    const value = error[name];
    if (value !== undefined && typeof value !== "string")
      throw invalid(`${name} of ${what} is ${quote(value)}: give a text`);
  }
}
