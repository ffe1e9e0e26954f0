// Reads take turns. So many run at once, and so many of one tenant, so that a tenant whose reads are slow never keeps all
// the readers from the others; tenants that wait are served one after the other. Each read has a deadline in real time,
// and closing the book ends those that are under way.
import { systemClock, type Timer } from "../core/clock.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import type { Reading } from "./reading.ts";

export type ReadTurns = {
  /** Runs `work` when it is its turn. When the signal aborts, `work` must let go of its reader at once: the caller has its
   *  error already, and the next read its turn. `work` says which reader it has, if it may have to start. */
  run<T>(who: Reading, work: (signal: AbortSignal, has: (reader: Starting) => void) => Promise<T>): Promise<T>;
  /** Ends the reads that have been under way for so long, and that began before this moment. */
  endLongerThan(ms: number, beforeMs: number, why: (who: Reading) => DaybookError): void;
  readonly running: number;
  /** Ends all reads, and refuses those to come. */
  close(): void;
};

export type Starting = { readonly started: boolean; readonly ready: Promise<void> };

type Running = { readonly who: Reading; readonly since: number; readonly abort: AbortController };
type Waiting = { begin(): void; refuse(error: DaybookError): void };
type Tenant = { running: number; readonly waiting: Set<Waiting> };

export function createReadTurns({ atOnce, perTenant }: { atOnce: number; perTenant: number }): ReadTurns {
  // In the order in which they are served: whoever began a read goes last.
  const tenants = new Map<string, Tenant>();
  const running = new Set<Running>();
  let closed = false;

  function tenantOf(name: string): Tenant {
    let tenant = tenants.get(name);
    if (tenant === undefined) tenants.set(name, (tenant = { running: 0, waiting: new Set() }));
    return tenant;
  }

  function serve(): void {
    for (const [name, tenant] of [...tenants]) {
      if (running.size >= atOnce) return;
      const [first] = tenant.waiting;
      if (first === undefined || tenant.running >= perTenant) continue;
      tenants.delete(name);
      tenants.set(name, tenant);
      tenant.waiting.delete(first);
      first.begin();
    }
  }

  async function turn(who: Reading): Promise<Running> {
    if (closed) throw closedRead();
    const tenant = tenantOf(who.tenant);
    if (tenant.waiting.size >= limits.readsWaitingMax) throw fullLine(who, tenant.waiting.size);
    const { promise, resolve, reject } = Promise.withResolvers<Running>();
    const begin = (): void => {
      timer.cancel();
      const began = { who, since: systemClock.monotonic(), abort: new AbortController() };
      tenant.running++;
      running.add(began);
      resolve(began);
    };
    const refuse = (error: DaybookError): void => {
      timer.cancel();
      tenant.waiting.delete(waiting);
      reject(error);
    };
    const waiting: Waiting = { begin, refuse };
    const timer = systemClock.after(who.msMax, () => refuse(fullLine(who, tenant.waiting.size - 1)), {
      keepAlive: true,
    });
    tenant.waiting.add(waiting);
    serve();
    return promise;
  }

  function end(one: Running): void {
    if (!running.delete(one)) return;
    const tenant = tenantOf(one.who.tenant);
    tenant.running--;
    if (tenant.running === 0 && tenant.waiting.size === 0) tenants.delete(one.who.tenant);
    serve();
  }

  return {
    get running() {
      return running.size;
    },
    async run<T>(who: Reading, work: (signal: AbortSignal, has: (reader: Starting) => void) => Promise<T>): Promise<T> {
      const one = await turn(who);
      const { signal } = one.abort;
      const endAfter = (ms: number, why: (who: Reading) => DaybookError): Timer =>
        systemClock.after(ms, () => one.abort.abort(why(who)), { keepAlive: true });
      let timer = endAfter(who.msMax, tooLong);
      // On a busy machine a reader takes seconds to start, and no narrower read would end sooner: the deadline is counted from there.
      const has = ({ started, ready }: Starting): void => {
        if (started) return;
        timer.cancel();
        timer = endAfter(limits.readerStartMs, neverStarted);
        void ready.then(() => {
          timer.cancel();
          if (running.has(one)) timer = endAfter(who.msMax, tooLong);
        });
      };
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as DaybookError), { once: true });
      });
      try {
        signal.throwIfAborted();
        return await Promise.race([work(signal, has), ended]);
      } finally {
        timer.cancel();
        end(one);
      }
    },
    endLongerThan(ms, beforeMs, why) {
      const until = Math.min(systemClock.monotonic() - ms, beforeMs);
      for (const one of running) if (one.since <= until) one.abort.abort(why(one.who));
    },
    close() {
      closed = true;
      for (const { waiting } of tenants.values()) for (const each of waiting) each.refuse(closedRead());
      for (const one of running) one.abort.abort(closedRead(one.who));
    },
  };
}

export function tooLong({ verb, msMax, tenant }: Reading): DaybookError {
  return new DaybookError(
    "timeout",
    `${verb} took longer than ${msMax} ms, so it was ended: narrow it, read less at once, or read it in pages`,
    { details: { verb, tenant, deadlineMs: msMax } },
  );
}

function neverStarted({ verb, tenant }: Reading): DaybookError {
  const why = `${verb} found no reader that had started within ${limits.readerStartMs} ms: the machine is too busy, so try again later`;
  return new DaybookError("busy", why, { details: { verb, tenant } });
}

function fullLine({ verb, tenant }: Reading, waiting: number): DaybookError {
  const whose = tenant === "" ? "the engine" : `tenant "${tenant}"`;
  return new DaybookError(
    "busy",
    `${verb} did not get its turn, with ${waiting} reads of ${whose} in line: try again in a moment, or ask for less at once`,
    { details: { verb, tenant } },
  );
}

export function closedRead(who?: Reading): DaybookError {
  if (who === undefined) return new DaybookError("closed", "the book is closed: open it again to read");
  return new DaybookError("closed", `the book was closed while ${who.verb} was under way: open it again to read`);
}
