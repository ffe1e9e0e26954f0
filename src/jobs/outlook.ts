// What a worker believes of the queue: whether a look may find work, when the next is due, whether jobs of its names wait
// for a host. A turn corrects it; a commit that the turn cannot have seen makes it look again.
import type { Clock } from "../core/clock.ts";
import type { Store } from "../storage/store.ts";
import { createAlarm, type Alarm } from "./alarm.ts";
import { peek } from "./peek.ts";
import type { Turn, TurnWork } from "./turn.ts";

export type Outlook = {
  readonly mayHaveWork: boolean;
  /** Something happened that may have brought work. */
  look(): void;
  /** The same, and due times may have changed. */
  lookAnew(): void;
  /** The same, but only if a read finds something. */
  lookIfAny(store: Store): Promise<void>;
  /** Jobs of our names may have been parked for want of a host. */
  hostsChanged(): void;
  /** Nothing runs here: what was left because it must run alone can be taken. */
  nothingRuns(): void;
  /** What to look for in a turn that begins now. */
  ask(): Asked;
  learn(asked: Asked, work: TurnWork, done: Turn): void;
  stop(): void;
};

export type Asked = { readonly wakes: number; readonly alarm: ReturnType<Alarm["ask"]>; readonly hosted: boolean };

const retryMs = 200;
const emptyLooksMax = 50;

/** `changed` is told that there is reason for a turn. */
export function createOutlook(clock: Clock, changed: () => void): Outlook {
  const alarm = createAlarm(clock, look);
  let mayHaveWork = true;
  let wakes = 0;
  let emptyLooks = 0;
  let lookForHosted = true;
  let aloneLeft = false;

  function look(): void {
    wakes++;
    emptyLooks = 0;
    mayHaveWork = true;
    changed();
  }

  function lookAnew(): void {
    alarm.forget();
    look();
  }

  function learnOfClaim(asked: Asked, work: TurnWork, { claim, moreHosted }: Turn): void {
    const { jobs, more, leftAlone } = claim;
    // Lanes that are all closed would be visited for ever; after a round of them only a wake or the sweep goes on.
    emptyLooks = jobs.length === 0 ? emptyLooks + 1 : 0;
    const mayHaveMore = jobs.length >= work.want || (more && emptyLooks < emptyLooksMax) || moreHosted;
    mayHaveWork = mayHaveMore || wakes !== asked.wakes;
    if (leftAlone) aloneLeft = true;
  }

  return {
    get mayHaveWork() {
      return mayHaveWork;
    },
    look,
    lookAnew,
    async lookIfAny(store) {
      if (await peek(store, alarm).catch(() => true)) lookAnew();
    },
    hostsChanged: () => void (lookForHosted = true),
    nothingRuns() {
      if (!aloneLeft) return;
      aloneLeft = false;
      mayHaveWork = true;
    },
    ask: () => ({ wakes, alarm: alarm.ask(), hosted: lookForHosted }),
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
    },
    stop: () => alarm.stop(),
  };
}
