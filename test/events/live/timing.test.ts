// When a live listener acts on what it hears: debounce, throttle, once, immediate, for. Only the clock of the test moves.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { limits } from "../../../src/core/limits.ts";
import { where } from "../../../src/events/live/where.ts";
import { heldHandler, openLive } from "./open-live.ts";

describe("debounce", () => {
  test("acts on the last event of a burst, once nothing was heard for the span", async () => {
    const { clock, listen, emit, runs, counts } = openLive();
    const acted: number[] = [];
    listen("settled", { on: "dial", debounce: "1s", run: (level: number) => void acted.push(level) });

    for (const level of [1, 2, 3]) {
      emit("dial", level);
      await clock.advance(999);
    }
    assert.deepEqual(acted, []);
    await clock.advance(1);
    assert.deepEqual(acted, [3]);
    emit("dial", 4);
    await clock.advance(1000);

    assert.deepEqual(acted, [3, 4]);
    assert.equal(runs.length, 2);
    assert.deepEqual(
      [counts("settled")["heard"], counts("settled")["leftOut"], counts("settled")["dropped"]],
      [4, 2, 0],
    );
  });

  test("a listener that is detached does not act on what waited for its time, and records it as skipped", async () => {
    const { clock, listen, emit, runs } = openLive();
    const detach = listen("settled", { on: "dial", debounce: "1s", run: () => undefined });

    emit("dial");
    assert.deepEqual(await detach(), [{ topic: "dial", waits: "debounce", events: 1 }]);
    await clock.advance(5000);

    assert.deepEqual(
      runs.map(({ name, status, topic }) => [name, status, topic]),
      [["settled", "skipped", "dial"]],
    );
  });
});

describe("throttle", () => {
  test("acts at once, then at most once in the span", async () => {
    const { clock, listen, emit, counts } = openLive();
    const acted: number[] = [];
    listen("bell", { on: "door.bell", throttle: "10s", run: (ring: number) => void acted.push(ring) });

    for (let ring = 0; ring < 25; ring++) {
      emit("door.bell", ring);
      await clock.advance(1000);
    }

    assert.deepEqual(acted, [0, 10, 20]);
    assert.equal(counts("bell")["leftOut"], 22);
  });

  test("a step of the wall clock does not affect a throttle", async () => {
    const { clock, listen, emit } = openLive();
    const acted: string[] = [];
    listen("bell", { on: "door.bell", throttle: "10s", run: (ring: string) => void acted.push(ring) });

    emit("door.bell", "first");
    clock.step(-3_600_000);
    await clock.advance(10_000);
    emit("door.bell", "second");
    clock.step(3_600_000);
    emit("door.bell", "too soon");

    assert.deepEqual(acted, ["first", "second"]);
  });

  test("after a debounce, it counts what the debounce lets through", async () => {
    const { clock, listen, emit } = openLive();
    const acted: number[] = [];
    listen("both", { on: "a", debounce: "1s", throttle: "10s", run: (n: number) => void acted.push(n) });

    for (const n of [1, 2, 3]) {
      emit("a", n);
      await clock.advance(6000);
    }

    assert.deepEqual(acted, [1, 3]);
  });
});

describe("once", () => {
  test("acts exactly once under a burst, in every mode, even when its handler emits what it hears", () => {
    for (const mode of ["parallel", "single", "restart", "queued"] as const) {
      const { listen, emit, runs, counts } = openLive();
      const held = heldHandler<number>();
      const run = (n: number, context: Parameters<typeof held.run>[1]): Promise<void> => {
        emit("go", 99);
        return held.run(n, context);
      };
      listen("starter", { on: "go", once: true, mode, run });

      for (let n = 0; n < 100; n++) emit("go", n);

      assert.deepEqual(
        held.begun.map(({ payload }) => payload),
        [0],
        mode,
      );
      assert.deepEqual([runs.length, counts("starter")["runs"], emit("go")], [0, 1, 0]);
    }
  });

  test("with a debounce it acts once on the last, and with a predicate on the first that fits", async () => {
    const { clock, listen, emit } = openLive();
    const acted: unknown[] = [];
    listen("quiet", { on: "go", once: true, debounce: 100, run: (n) => void acted.push(n) });
    listen("big", { on: "go", once: true, where: where.above("", 2), run: (n) => void acted.push(`big ${String(n)}`) });

    for (const n of [1, 2, 3, 4]) emit("go", n);
    await clock.advance(100);
    emit("go", 5);
    await clock.advance(100);

    assert.deepEqual(acted, ["big 3", 4]);
  });

  test("a failed handler counts as history of its registration", () => {
    const { listen, emit, runs } = openLive();
    const run = (): never => {
      throw new Error("the bulb is broken");
    };
    listen("starter", { on: "go", once: true, run });

    emit("go");
    emit("go");

    assert.deepEqual(
      runs.map(({ status }) => status),
      ["error"],
    );
  });
});

describe("for", () => {
  test("acts when the predicate has held for the span, once for each time that it begins to hold", async () => {
    const { clock, listen, emit } = openLive();
    const acted: unknown[] = [];
    const options = { on: "hall.motion", where: where.equals("motion", false), for: "5m" } as const;
    listen("lights-out", { ...options, run: (payload) => void acted.push(payload) });

    emit("hall.motion", { motion: false, n: 1 });
    await clock.advance(240_000);
    emit("hall.motion", { motion: true });
    await clock.advance(120_000);
    assert.deepEqual(acted, [], "a motion called it off");
    emit("hall.motion", { motion: false, n: 2 });
    await clock.advance(200_000);
    emit("hall.motion", { motion: false, n: 3 });
    await clock.advance(99_999);
    assert.deepEqual(acted, []);
    await clock.advance(1);
    assert.deepEqual(acted, [{ motion: false, n: 3 }], "still the same hold, and the last event that it held for");
    emit("hall.motion", { motion: false, n: 4 });
    await clock.advance(600_000);
    assert.equal(acted.length, 1, "it goes on to hold");
    emit("hall.motion", { motion: true });
    emit("hall.motion", { motion: false, n: 5 });
    await clock.advance(300_000);

    assert.deepEqual(acted.slice(1), [{ motion: false, n: 5 }]);
  });

  test("each topic is timed by itself", async () => {
    const { clock, listen, emit } = openLive();
    const acted: string[] = [];
    const options = { on: "door.*", where: where.equals("", "open"), for: "1m" } as const;
    listen("left-open", { ...options, run: (_open, { event }) => void acted.push(event.topic) });

    emit("door.front", "open");
    await clock.advance(30_000);
    emit("door.back", "open");
    emit("door.front", "shut");
    await clock.advance(60_000);

    assert.deepEqual(acted, ["door.back"]);
  });

  test("when too many topics are timed, the oldest is dropped and counted", async () => {
    const { clock, listen, emit, busy } = openLive();
    const acted: string[] = [];
    const options = { on: "door.*", where: where.equals("", "open"), for: "1m" } as const;
    listen("left-open", { ...options, run: (_open, { event }) => void acted.push(event.topic) });

    for (let n = 0; n <= limits.liveTopicsMax; n++) emit(`door.${n}`, "open");
    for (let n = 2; n <= limits.liveTopicsMax; n++) emit(`door.${n}`, "shut");
    await clock.advance(60_000);

    assert.deepEqual([acted, busy()], [["door.1"], 1]);
  });

  test('a predicate that throws cancels the timer of "for"', async () => {
    const { clock, listen, emit, runs } = openLive();
    const steady = ({ level }: { level: number | null }): boolean => {
      if (level === null) throw new Error("the sensor is gone");
      return level > 3;
    };
    listen("alarm", { on: "level", where: steady, for: "1m", run: () => undefined });

    emit("level", { level: 5 });
    emit("level", { level: null });
    await clock.advance(120_000);

    assert.deepEqual(
      runs.map(({ status, error_type }) => [status, error_type]),
      [["error", "PredicateError"]],
    );
  });
});

describe("immediate", () => {
  test("acts when it is attached on the last event of each topic that fits, and then on what follows", () => {
    const { listen, emit, bus } = openLive();
    const acted: unknown[] = [];
    emit("light.hall", { on: false });
    emit("light.hall", { on: true, n: 1 });
    emit("light.attic", { on: false });
    emit("light.cellar", { on: true, n: 2 });
    bus.emit("other", "light.hall", { on: true, n: "of another tenant" });

    const options = { on: ["light.*", "light.hall"], immediate: true, where: where.equals("on", true) } as const;
    listen("mirror", { ...options, run: (payload) => void acted.push(payload) });
    listen("late", { on: "light.*", run: (payload) => void acted.push(["late", payload]) });
    emit("light.attic", { on: true, n: 3 });

    assert.deepEqual(acted, [{ on: true, n: 1 }, { on: true, n: 2 }, { on: true, n: 3 }, ["late", { on: true, n: 3 }]]);
  });

  test("with for, what holds already is timed from the attachment on", async () => {
    const { clock, listen, emit } = openLive();
    let acted = 0;
    emit("door", "open");
    await clock.advance(600_000);
    listen("left-open", {
      on: "door",
      immediate: true,
      where: where.equals("", "open"),
      for: "1m",
      run: () => void (acted += 1),
    });

    await clock.advance(59_999);
    assert.equal(acted, 0);
    await clock.advance(1);

    assert.equal(acted, 1);
  });

  test("of very many topics, the one heard longest ago is forgotten first", () => {
    const { listen, emit } = openLive();
    const acted: unknown[] = [];
    for (let n = 0; n < limits.liveTopicsMax; n++) emit(`sensor.${n}`, n);
    emit("sensor.0", 0);
    emit("sensor.new", "new");

    listen("two", { on: ["sensor.0", "sensor.1"], immediate: true, run: (n) => void acted.push(n) });

    assert.deepEqual(acted, [0]);
  });
});
