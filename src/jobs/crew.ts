// The workers of one book share a process, and so the fate of a job that ends it. What must run alone runs alone among
// all of them: nobody claims while it is in hand, it begins when nothing runs, and while it runs nothing else starts.
import type { Clock } from "../core/clock.ts";
import type { ClaimedJob } from "./claim.ts";
import type { Engine } from "./engine.ts";

export type Member = {
  /** Claimed, being claimed, or running. */
  readonly inHand: number;
  readonly ready: readonly Alone[];
  /** Another member's hands may be empty now. */
  wake(): void;
};

export type Crew = {
  /** Returns the function that leaves. */
  join(member: Member): () => void;
  /** Nobody holds anything. */
  readonly idle: boolean;
  /** Something that must run alone is claimed or running. */
  readonly holdsAlone: boolean;
  mayStart(job: Alone): boolean;
  started(job: Alone): void;
  ended(job: Alone): void;
  wakeOthers(member: Member): void;
  /** Claim nothing for a while, so that a job which must run alone finds the session empty. */
  drainForAlone(): void;
  /** The last time is long enough ago. */
  mayDrain(): boolean;
  mustDrain(): boolean;
};

type Alone = Pick<ClaimedJob, "alone">;

/** Draining for a job that must run alone gives up after this long, and is tried again, for longer, much later: others
 *  must not stand still for it. */
const drainMs = 10_000;
const drainMsMax = 300_000;
const restFactor = 10;

const crews = new WeakMap<Pick<Engine, "clock">, Crew>();

export function crewOf(engine: Pick<Engine, "clock">): Crew {
  let crew = crews.get(engine);
  if (crew === undefined) crews.set(engine, (crew = createCrew(engine.clock)));
  return crew;
}

function createCrew(clock: Clock): Crew {
  const members = new Set<Member>();
  let running = 0;
  let aloneRunning = 0;
  let drainSince = Number.NEGATIVE_INFINITY;
  let drainingMs = drainMs;
  let emptied = true;
  const mayDrain = (): boolean => clock.monotonic() - drainSince >= restFactor * drainingMs;
  const some = (is: (member: Member) => boolean): boolean => {
    for (const member of members) if (is(member)) return true;
    return false;
  };
  return {
    join(member) {
      members.add(member);
      return () => members.delete(member);
    },
    get idle() {
      return !some((member) => member.inHand > 0);
    },
    get holdsAlone() {
      return aloneRunning > 0 || some((member) => member.ready.some((job) => job.alone !== 0));
    },
    mayStart: (job) => running === 0 || (aloneRunning === 0 && job.alone === 0),
    started(job) {
      running++;
      if (job.alone !== 0) aloneRunning++;
    },
    ended(job) {
      running--;
      if (job.alone !== 0) aloneRunning--;
    },
    wakeOthers(member) {
      if (members.size > 1) for (const other of members) if (other !== member) other.wake();
    },
    mayDrain,
    drainForAlone() {
      if (!mayDrain()) return;
      // What ran here took longer than we waited, so this time it is given longer: else the one would wait for ever.
      drainingMs = emptied ? drainMs : Math.min(drainMsMax, 2 * drainingMs);
      emptied = false;
      drainSince = clock.monotonic();
      clock.after(drainingMs, () => members.forEach((member) => member.wake()));
    },
    mustDrain() {
      if (clock.monotonic() - drainSince >= drainingMs) return false;
      if (running > 0 || some(({ ready }) => ready.length > 0)) return true;
      emptied = true;
      return false;
    },
  };
}
