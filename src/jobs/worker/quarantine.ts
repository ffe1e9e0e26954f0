// A job that was lost twice runs alone in its process: the workers of one book share a process, and so the fate of a job
// that ends it. While one of them claims or runs such a job, the others claim nothing.
import { rememberFor } from "../../core/remember.ts";
import type { Clock } from "../../core/clock.ts";
import type { Engine } from "../engine.ts";

export type Member = {
  /** Places that are taken: by what runs, or by a claim under way. */
  readonly inHand: number;
  /** The process may have become empty, or open again. */
  wake(): void;
};

export type Quarantine = ReturnType<typeof createQuarantine>;

// A drain gives up after this long, and the next one, for longer, comes much later: other jobs must not stand still for
// one that keeps killing its process.
const drainMs = 10_000;
const drainMsMax = 300_000;
const restFactor = 10;

export const quarantineOf = rememberFor((engine: Pick<Engine, "clock">) => createQuarantine(engine.clock));

function createQuarantine(clock: Clock) {
  const members = new Set<Member>();
  let claiming: Member | undefined;
  let aloneRunning = 0;
  let drainSince = Number.NEGATIVE_INFINITY;
  let drainingMs = drainMs;
  let emptied = true;
  const isIdle = (): boolean => ![...members].some((member) => member.inHand > 0);
  const isClosed = (): boolean => aloneRunning > 0 || claiming !== undefined;
  /** Enough time has passed since the last drain for another one. */
  const mayDrain = (): boolean => clock.monotonic() - drainSince >= restFactor * drainingMs;
  return {
    /** Returns the function that leaves. */
    join(member: Member) {
      members.add(member);
      return () => members.delete(member);
    },
    /** No worker of the process holds anything. */
    get idle() {
      return isIdle();
    },
    /** A job that must be alone runs, or is being claimed, so nothing else may be. */
    get closed() {
      return isClosed();
    },
    /** Lets `member` claim what must run alone; false while the process is not empty. */
    enter(member: Member) {
      if (isClosed() || !isIdle()) return false;
      claiming = member;
      return true;
    },
    leave(member: Member) {
      if (claiming === member) claiming = undefined;
    },
    aloneStarted: () => void aloneRunning++,
    aloneEnded: () => void aloneRunning--,
    wakeOthers(member: Member) {
      for (const other of members) if (other !== member) other.wake();
    },
    mayDrain,
    /** Asks all workers to claim nothing for a while, so that the process becomes empty. */
    drain() {
      if (!mayDrain()) return;
      // The last drain was too short for what ran here, so this one is longer.
      drainingMs = emptied ? drainMs : Math.min(drainMsMax, 2 * drainingMs);
      emptied = false;
      drainSince = clock.monotonic();
      clock.after(drainingMs, () => members.forEach((member) => member.wake()));
    },
    mustDrain() {
      if (clock.monotonic() - drainSince >= drainingMs) return false;
      if (!isIdle()) return true;
      emptied = true;
      return false;
    },
  };
}
