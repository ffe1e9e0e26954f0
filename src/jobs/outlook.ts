// What a worker believes of the queue: whether a look may find work, when the next is due, whether jobs of its names wait
// for a host. A turn corrects it; a commit that the turn cannot have seen makes it look again.
import type { Clock, Timer } from "../core/clock.ts";
import type { Store } from "../storage/store.ts";
import { createAlarm, type Alarm } from "./alarm.ts";
import { peek } from "./peek.ts";
import type { Turn, TurnWork } from "./turn.ts";

export type Outlook = {
  readonly mayHaveWork: boolean;
  /** The same, or it rests for a moment because others were counting its limits: it is not idle. */
  readonly expectsWork: boolean;
  /** Something happened that may have brought work. */
  look(): void;
  /** The same, and due times may have changed. */
  lookAnew(): void;
  /** The same, but only if a read finds something. */
  lookIfAny(): Promise<void>;
  /** Jobs of our names may have been parked for want of a host. */
  hostsChanged(): void;
  /** Nothing runs here: what was left because it must run alone can be taken. */
  nothingRuns(): void;
  /** What to look for in a turn that begins now. */
  ask(): Asked;
  learn(asked: Asked, work: TurnWork, done: Turn): void;
  /** The turn came to nothing. What it held was passed by, by whoever looked meanwhile, and is there again. */
  failed(asked: Asked): void;
  stop(): void;
};

export type Asked = {
  readonly wakes: number;
  readonly left: number;
  readonly rounds: number;
  readonly alarm: ReturnType<Alarm["ask"]>;
  readonly hosted: boolean;
};

const retryMs = 200;
// Looks may begin anywhere, so only the second time that the end is passed is every lane known to have been seen.
const emptyRoundsMax = 2;
const contendedLooksMax = 50;

/** `changed` is told that there is reason for a turn. */
export function createOutlook(clock: Clock, store: Pick<Store, "read">, changed: () => void): Outlook {
  const alarm = createAlarm(clock, look);
  let mayHaveWork = true;
  let wakes = 0;
  let left = 0; // How many turns left something in line.
  let emptyRounds = 0;
  let contendedLooks = 0;
  let lookForHosted = true;
  let aloneLeft = false;
  let rest: Timer | undefined;
  let glance: Timer | undefined;

  function look(): void {
    rest?.cancel();
    rest = undefined;
    wakes++;
    emptyRounds = 0;
    contendedLooks = 0;
    mayHaveWork = true;
    changed();
  }

  function lookAnew(): void {
    alarm.forget();
    look();
  }

  function learnOfClaim(asked: Asked, work: TurnWork, { claim, moreHosted }: Turn): void {
    const goOn = goesOn(asked, claim) || claim.jobs.length >= work.want;
    // A turn that overlaps another finds nothing where the other one looks, so it must not outdo what that one found.
    const leftByOthers = left !== asked.left && rest === undefined;
    mayHaveWork = goOn || moreHosted || wakes !== asked.wakes || leftByOthers;
    if (claim.contended || (goOn && claim.jobs.length + claim.parked > 0)) left++;
    if (claim.leftAlone) aloneLeft = true;
    if (claim.passedBy) glanceLater();
  }

  /** Whoever held what was passed by need not take it: it may change its place, undo what it did, or be lost. Nobody tells
   *  of that, so there is one more look a moment later, and it is only a read. */
  function glanceLater(): void {
    glance ??= clock.after(retryMs, () => {
      glance = undefined;
      if (!mayHaveWork) void lookIfAny();
    });
  }

  async function lookIfAny(): Promise<void> {
    if (await peek(store, alarm).catch(() => true)) lookAnew();
  }

  /** Lanes that are all closed would be visited for ever; after a round of them only a wake or the sweep goes on. */
  function goesOn(asked: Asked, { jobs, parked, more, wentRound, contended }: Turn["claim"]): boolean {
    if (jobs.length + parked > 0) contendedLooks = 0;
    if (jobs.length + parked > 0 || !more) {
      emptyRounds = 0;
      return more;
    }
    if (contended) {
      if (++contendedLooks < contendedLooksMax) return true;
      // Whoever counts our limit has not committed yet: asking at every turn of the loop is no help.
      contendedLooks = 0;
      rest?.cancel();
      rest = clock.after(retryMs, look);
      return false;
    }
    // Two turns that overlap see the same lanes, so they have gone round once.
    if (wentRound && asked.rounds === emptyRounds) emptyRounds++;
    if (emptyRounds < emptyRoundsMax) return true;
    emptyRounds = 0;
    return false;
  }

  return {
    get mayHaveWork() {
      return mayHaveWork;
    },
    get expectsWork() {
      return mayHaveWork || rest !== undefined;
    },
    look,
    lookAnew,
    lookIfAny,
    hostsChanged: () => void (lookForHosted = true),
    nothingRuns() {
      if (!aloneLeft) return;
      aloneLeft = false;
      mayHaveWork = true;
    },
    ask: () => ({ wakes, left, rounds: emptyRounds, alarm: alarm.ask(), hosted: lookForHosted }),
    learn(asked, work, done) {
      alarm.learn(asked.alarm, done);
      if (asked.hosted && asked.wakes === wakes) lookForHosted = done.moreHosted;
      if (!done.alive) {
        // A replacement of the session is on its way; until then there is nothing to claim for.
        mayHaveWork = false;
        clock.after(retryMs, look);
      } else if (work.want > 0) {
        learnOfClaim(asked, work, done);
      } else if (work.endings.length > 0) {
        // An older turn that is still under way may have found nothing; this is news to it.
        wakes++;
        mayHaveWork = true;
      }
      // The one that counted our limit may have been this very turn.
      if (rest !== undefined && (work.endings.length > 0 || done.claim.jobs.length > 0)) look();
    },
    failed({ hosted }) {
      if (hosted) lookForHosted = true;
      look();
    },
    stop() {
      rest?.cancel();
      glance?.cancel();
      alarm.stop();
    },
  };
}
