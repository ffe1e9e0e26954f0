// Whose units are written next. Units wait by turn: each tenant has one, and so has the engine. The turn that has used the least
// of the writer's time goes first, so a tenant that writes little waits for the unit under way and not for a line of
// others', and no turn starves, because whoever is served falls behind. The units of one turn keep their order.
import { limits } from "../core/limits.ts";

export type WriteTurns<Unit extends Waits> = {
  /** How many units wait. */
  readonly size: number;
  add(unit: Unit): void;
  /** The units of the next group. While several turns wait each gives a few units, and one whose units take long has groups of
   *  its own, so that nobody's short unit is committed only after somebody's long one. */
  take(most: number): Unit[];
  /** Takes the first unit of the turn that is next among those that `may` be served. */
  takeOne(may: (turn: string) => boolean): Unit | undefined;
  /** Units that were taken and did not get to run come back to the front of their turns. */
  putBack(units: readonly Unit[]): void;
  /** So many units of a turn took so long. */
  used(turn: string, units: number, ms: number): void;
  /** Whether a unit of this turn took longer than a group may, a moment ago. */
  takesLong(turn: string): boolean;
  /** The turns that wait. */
  waiting(): string[];
  /** Removes and returns the units that came until then; default all. */
  remove(arrivedUntil?: number): Unit[];
};

/** `arrived` are numbers in the order of arrival. */
export type Waits = { readonly turn: string; readonly arrived: number };

type Turn<Unit> = {
  /** Milliseconds of the writer's time, counted from where the others were when this turn began to wait. */
  used: number;
  readonly units: Unit[];
};

/** A unit counts for at least so much, so that turns also alternate by number where a clock stands still. */
const unitMsMin = 0.01;
/** For so long a turn is known as one whose units take long. */
const longForMs = 1000;
const turnsKeptMax = 1000;

export function createWriteTurns<Unit extends Waits>(monotonic: () => number): WriteTurns<Unit> {
  const turns = new Map<string, Turn<Unit>>();
  const longUntil = new Map<string, number>();
  let size = 0;
  /** What the turn that was served last had used by then. */
  let reached = 0;

  function turnOf(name: string): Turn<Unit> {
    let turn = turns.get(name);
    if (turn === undefined) turns.set(name, (turn = { used: reached, units: [] }));
    return turn;
  }

  function takesLong(name: string): boolean {
    const until = longUntil.get(name);
    if (until === undefined) return false;
    if (until > monotonic()) return true;
    longUntil.delete(name);
    return false;
  }

  // Of two that used as much, the one whose units are short, then the one that has waited longer.
  function inOrder(): { name: string; turn: Turn<Unit>; long: boolean }[] {
    const waiting = [...turns].filter(([, { units }]) => units.length > 0);
    const each = waiting.map(([name, turn]) => ({ name, turn, long: takesLong(name) }));
    return each.sort(
      (a, b) =>
        a.turn.used - b.turn.used ||
        Number(a.long) - Number(b.long) ||
        (a.turn.units[0]?.arrived ?? 0) - (b.turn.units[0]?.arrived ?? 0),
    );
  }

  function give({ units }: Turn<Unit>, most: number): Unit[] {
    const given = units.splice(0, most);
    size -= given.length;
    return given;
  }

  // A turn in which nothing waits is remembered for as long as it is ahead of the others.
  function forget(): void {
    for (const [name, { used, units }] of turns) {
      if (units.length === 0 && (size === 0 || used <= reached)) turns.delete(name);
    }
    for (const name of longUntil.size > turnsKeptMax ? longUntil.keys() : []) takesLong(name);
  }

  return {
    get size() {
      return size;
    },
    add(unit) {
      const turn = turnOf(unit.turn);
      if (turn.units.length === 0) turn.used = Math.max(turn.used, reached);
      turn.units.push(unit);
      size++;
    },
    take(most) {
      if (turns.size > 1) forget();
      if (turns.size === 1) for (const turn of turns.values()) return give(turn, most);
      const [first, ...others] = inOrder();
      if (first === undefined) return [];
      reached = Math.max(reached, first.turn.used);
      if (others.length === 0) return give(first.turn, most);
      const each = Math.min(limits.groupTurnUnitsMax, most);
      if (first.long) return give(first.turn, each);
      const taken = give(first.turn, each);
      for (const { turn, long } of others) if (!long) taken.push(...give(turn, Math.min(each, most - taken.length)));
      return taken;
    },
    takeOne(may) {
      const first = inOrder().find(({ name }) => may(name));
      if (first === undefined) return undefined;
      reached = Math.max(reached, first.turn.used);
      return give(first.turn, 1)[0];
    },
    putBack(units) {
      for (const [name, some] of Map.groupBy(units, ({ turn }) => turn)) turnOf(name).units.unshift(...some);
      size += units.length;
    },
    used(name, units, ms) {
      turnOf(name).used += Math.max(ms, units * unitMsMin);
      if (ms > limits.groupMsMax) longUntil.set(name, monotonic() + longForMs);
      if (size === 0) forget();
    },
    takesLong,
    waiting: () => [...turns].flatMap(([name, { units }]) => (units.length > 0 ? name : [])),
    remove(arrivedUntil = Number.POSITIVE_INFINITY) {
      const removed = [...turns.values()].flatMap(({ units }) => {
        const first = units.findIndex(({ arrived }) => arrived > arrivedUntil);
        return units.splice(0, first === -1 ? units.length : first);
      });
      size -= removed.length;
      return removed.sort((a, b) => a.arrived - b.arrived);
    },
  };
}
