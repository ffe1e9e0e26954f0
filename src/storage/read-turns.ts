// Reads take turns. So many run at once, and so many of one tenant, so that a tenant whose reads are slow never keeps all
// the readers from the others; tenants that wait are served one after the other. While other tenants read, a tenant has one
// slow read at a time, because its share of the processors is theirs as well. Each read has a deadline in real time, and
// closing the book ends those that are under way.
import { systemClock } from "../core/clock.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { engineTenant, type Reading } from "./reading.ts";

export type ReadTurns = {
  /** Runs `work` when it is its turn. When the signal aborts, `work` must let go of its reader at once: the caller has its
   *  error already, and the next read its turn. */
  run<T>(who: Reading, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Ends the reads that have been under way for so long, and that began before this moment. */
  endLongerThan(ms: number, beforeMs: number, why: (who: Reading) => DaybookError): void;
  readonly running: number;
  /** Ends all reads, and refuses those to come. */
  close(): void;
};

type Running = { readonly who: Reading; readonly since: number; readonly abort: AbortController };
type Waiting = { readonly who: Reading; begin(): void; refuse(error: DaybookError): void };
type Tenant = { running: number; readonly waiting: Set<Waiting> };

export type Shares = {
  readonly atOnce: number;
  readonly perTenant: number;
  /** Whether a tenant has one slow read at a time beside others. Not for reads that last as long as a function of the user's:
   *  one inside another would wait for it. */
  readonly slowAlone?: boolean;
};

export function createReadTurns({ atOnce, perTenant, slowAlone = false }: Shares): ReadTurns {
  // In the order in which they are served: whoever began a read goes last.
  const tenants = new Map<string, Tenant>();
  const running = new Set<Running>();
  const pace = createPace(running);
  let closed = false;

  function tenantOf(name: string): Tenant {
    let tenant = tenants.get(name);
    if (tenant === undefined) tenants.set(name, (tenant = { running: 0, waiting: new Set() }));
    return tenant;
  }

  function serve(): void {
    for (const [name, tenant] of [...tenants]) {
      if (running.size >= atOnce) return;
      const first = tenant.running >= perTenant ? undefined : nextOf(tenant, name);
      if (first === undefined) continue;
      tenants.delete(name);
      tenants.set(name, tenant);
      tenant.waiting.delete(first);
      first.begin();
    }
  }

  function nextOf({ waiting }: Tenant, name: string): Waiting | undefined {
    const [first] = waiting;
    if (first === undefined || !slowAlone || !pace.isBeside(name) || !pace.hasSlow(name)) return first;
    return waiting.values().find(({ who }) => !pace.isSlow(who));
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
    const waiting: Waiting = { who, begin, refuse };
    const timer = systemClock.after(who.msMax, () => refuse(fullLine(who, tenant.waiting.size - 1)), {
      keepAlive: true,
    });
    tenant.waiting.add(waiting);
    serve();
    return promise;
  }

  function end(one: Running): void {
    if (!running.delete(one)) return;
    pace.ended(one);
    const tenant = tenantOf(one.who.tenant);
    tenant.running--;
    if (tenant.running === 0 && tenant.waiting.size === 0) tenants.delete(one.who.tenant);
    serve();
  }

  return {
    get running() {
      return running.size;
    },
    async run<T>(who: Reading, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const one = await turn(who);
      const { signal } = one.abort;
      const timer = systemClock.after(who.msMax, () => one.abort.abort(tooLong(who)), { keepAlive: true });
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as DaybookError), { once: true });
      });
      try {
        signal.throwIfAborted();
        return await Promise.race([work(signal), ended]);
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

type Pace = {
  /** Whether a tenant beside this one reads, or has just done so. The engine is none. */
  isBeside(tenant: string): boolean;
  /** Whether a slow read of the tenant is under way. */
  hasSlow(tenant: string): boolean;
  /** Whether reads of this verb were slow lately, for this tenant. */
  isSlow(who: Reading): boolean;
  ended(one: Running): void;
};

/** More verbs of tenants than these are not remembered; the oldest is forgotten. */
const slowMax = 1000;

function createPace(running: ReadonlySet<Running>): Pace {
  /** How many quick reads make the verb quick again. */
  const slow = new Map<string, number>();
  // The last two tenants that read, and when: one of them is another one.
  const lately = new Map<string, number>();
  const nameOf = ({ tenant, verb }: Reading): string => JSON.stringify([tenant, verb]);
  const isLong = (one: Running): boolean => systemClock.monotonic() - one.since >= limits.readSlowMs;
  const isSlow = (who: Reading): boolean => slow.has(nameOf(who));

  return {
    isSlow,
    isBeside(tenant) {
      for (const { who } of running) if (who.tenant !== tenant && who.tenant !== engineTenant) return true;
      const since = systemClock.monotonic() - limits.readsBesideMs;
      return lately.entries().some(([name, at]) => name !== tenant && at >= since);
    },
    hasSlow(tenant) {
      for (const one of running) if (one.who.tenant === tenant && (isLong(one) || isSlow(one.who))) return true;
      return false;
    },
    ended(one) {
      if (one.who.tenant === engineTenant) return;
      lately.delete(one.who.tenant);
      lately.set(one.who.tenant, systemClock.monotonic());
      if (lately.size > 2) lately.delete(lately.keys().next().value ?? "");
      const name = nameOf(one.who);
      const left = isLong(one) ? limits.readsQuickAgain : (slow.get(name) ?? 0) - 1;
      slow.delete(name);
      if (left > 0) slow.set(name, left);
      if (slow.size > slowMax) slow.delete(slow.keys().next().value ?? "");
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
