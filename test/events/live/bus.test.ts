// Who hears what, in which order; definitions and predicates.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineLive } from "../../../src/events/live/define.ts";
import type { LiveContext } from "../../../src/events/live/live-run.ts";
import type { LiveEvent } from "../../../src/events/event.ts";
import { where, type Where } from "../../../src/events/live/where.ts";
import { event } from "../../../src/define/event.ts";
import { openLive } from "./open-live.ts";

describe("the bus", () => {
  test("the higher priority begins first, and of equals the one that was attached first", () => {
    const { listen, emit } = openLive();
    const begun: string[] = [];
    const named = (name: string, priority: number, on = "a.b"): unknown =>
      listen(name, { on, priority, run: () => void begun.push(name) });
    named("usual", 0);
    named("last", -5);
    named("first", 10, ">");
    named("usual too", 0, "a.*");
    named("first too", 10);
    named("deaf", 1000, "a.c");

    const heard = emit("a.b");

    assert.equal(heard, 5);
    assert.deepEqual(begun, ["first", "first too", "usual", "usual too", "last"]);
  });

  test("a listener of several patterns hears an event once, and tenants do not hear each other", () => {
    const { listen, bus } = openLive();
    const heard: string[] = [];
    listen("two", { on: ["a.*", "a.b", event("a.b")], run: (n: string) => void heard.push(n) });
    const all = defineLive("all", {
      on: "a.b",
      live: true,
      tenants: "all",
      run: (n: string) => void heard.push(`all ${n}`),
    });
    bus.attach(all, "default");

    bus.emit("default", "a.b", "mine");
    bus.emit("acme", "a.b", "theirs");

    assert.deepEqual(heard, ["mine", "all mine", "all theirs"]);
    assert.deepEqual(
      bus.list("acme").map(({ name, runs }) => [name, runs]),
      [["all", 1]],
    );
  });

  test("a listener for all tenants debounces each tenant separately", async () => {
    const { bus, clock } = openLive();
    const heard: unknown[] = [];
    const run = (n: number, { tenant }: LiveContext): void => void heard.push([tenant, n]);
    bus.attach(defineLive("all", { on: "a", live: true, tenants: "all", debounce: 100, run }), "default");

    for (const n of [1, 2]) for (const tenant of ["a", "b"]) bus.emit(tenant, "a", n);
    await clock.advance(100);

    assert.deepEqual(heard, [
      ["a", 2],
      ["b", 2],
    ]);
  });

  test("hears from attach to detach, even while an event is being dispatched", async () => {
    const { listen, emit } = openLive();
    const heard: string[] = [];
    emit("a", "before");
    const detach = listen("one", { on: "a", run: (n: string) => void heard.push(n) });
    emit("a", "while");
    await detach();
    await detach();
    emit("a", "after");

    assert.deepEqual(heard, ["while"]);
    listen("one", { on: "a", run: () => undefined });
    assert.throws(() => listen("one", { on: "b", run: () => undefined }), {
      code: "invalid",
      message: /live listener named "one" is attached already/,
    });
  });

  test("a live listener hears a published event with its id and its position in the chain", () => {
    const { listen, bus, emit, runs } = openLive();
    const events: LiveEvent[] = [];
    listen("one", { on: "order.paid", run: () => void emit("noticed") });
    listen("two", { on: "noticed", run: (_payload, { event }) => void events.push(event) });

    bus.dispatch({
      id: "event-1",
      tenant: "default",
      topic: "order.paid",
      payload: {},
      key: "o-17",
      headers: {},
      at: 5,
      chainDepth: 3,
      stored: { id: "event-1", rootId: "event-0" },
      causeRunId: "run-1",
      rootRunId: "run-0",
    });

    const [two, one] = runs;
    assert.deepEqual([one?.event_id, one?.cause_run_id, one?.root_run_id], ["event-1", "run-1", "run-0"]);
    assert.deepEqual([two?.event_id, two?.cause_run_id, two?.root_run_id], [null, one?.id, "run-0"]);
    assert.deepEqual(
      events.map(({ id, chainDepth, stored }) => [id, chainDepth, stored]),
      [[null, 4, { id: "event-1", rootId: "event-0" }]],
    );
  });

  test("bad topics are refused when they are emitted, and unsafe segments are only names", () => {
    const { listen, emit } = openLive();
    const heard: string[] = [];
    listen("proto", { on: "__proto__.*", run: (_payload, { event }) => void heard.push(event.topic) });

    assert.equal(emit("__proto__.polluted"), 1);
    for (const topic of ["", "a..b", "a.*", "x".repeat(10_240), "a\0"]) {
      assert.throws(() => emit(topic), { code: "invalid" });
    }

    assert.deepEqual(heard, ["__proto__.polluted"]);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });
});

describe("where", () => {
  const holds = (part: Where, ...payloads: unknown[]): unknown[] => {
    const { listen, emit, runs } = openLive();
    const acted = new Set<unknown>();
    listen("asked", { on: "t", where: part, run: (_payload, { event }) => void acted.add(event) });
    return payloads.map((payload) => {
      const [before, ran] = [acted.size, runs.length];
      emit("t", payload);
      const failed = runs.slice(ran).find(({ status }) => status === "error");
      return failed === undefined ? acted.size > before : failed.error_message;
    });
  };

  test("each predicate holds for what it says, and for nothing that is missing, inherited or of another type", () => {
    const on = { state: { level: 5, tags: ["a"], name: "hall" } };
    const cases: [Where, unknown[], boolean[], string][] = [
      [
        where.equals("state.level", 5),
        [on, { state: { level: "5" } }, {}, null, 5],
        [true, false, false, false, false],
        "state.level = 5",
      ],
      [where.equals("state.tags", ["a"]), [on, { state: { tags: ["b"] } }], [true, false], 'state.tags = ["a"]'],
      [where.equals("", "open"), ["open", "shut"], [true, false], 'payload = "open"'],
      [where.equals("a", null), [{ a: null }, {}], [true, false], "a = null"],
      [where.oneOf("a", [1, "x"]), [{ a: 1 }, { a: "x" }, { a: 2 }], [true, true, false], 'a is one of 1, "x"'],
      [where.above("a", 3), [{ a: 4 }, { a: 3 }, { a: "4" }, {}], [true, false, false, false], "a > 3"],
      [where.below("items.1", 3), [{ items: [9, 2] }, { items: [2] }], [true, false], "items.1 < 3"],
      [
        where.exists("constructor.name"),
        [{}, { constructor: { name: "x" } }],
        [false, true],
        "constructor.name is there",
      ],
      [where.changed("a"), [{ a: 1 }, { a: 1 }, { a: 2 }, {}, {}], [true, false, true, true, false], "a changed"],
      [
        where.changed("a", { from: 1, to: 2 }),
        [{ a: 2 }, { a: 1 }, { a: 2 }, { a: 3 }, { a: 2 }],
        [false, false, true, false, false],
        "a changed from 1 to 2",
      ],
      [
        where.all(where.above("", 1), where.below("", 3)),
        [1, 2, 3],
        [false, true, false],
        "payload > 1 and payload < 3",
      ],
      [
        where.any(where.equals("", 1), where.not(where.above("", 0))),
        [1, -1, 2],
        [true, true, false],
        "payload = 1 or not (payload > 0)",
      ],
      [
        function isEvening() {
          return true;
        },
        [1],
        [true],
        "isEvening",
      ],
    ];
    for (const [part, payloads, expected, words] of cases) {
      assert.deepEqual(holds(part, ...payloads), expected, words);
      assert.equal(where.all(part).describe(), words);
    }
    assert.equal(
      where.all(where.any(where.exists("a"), where.exists("b")), where.exists("c")).describe(),
      "(a is there or b is there) and c is there",
    );
  });

  test("a predicate that throws, or answers neither true nor false, is an error run and never a silent skip", () => {
    const broken = (): boolean => {
      throw new TypeError("no such room");
    };
    const later = (async () => true) as unknown as Where;
    const truthy = (() => "yes") as unknown as Where;

    assert.deepEqual(holds(broken, {}), ["where broken: no such room"]);
    assert.deepEqual(holds(where.not(broken), {}), ["where not (broken): no such room"]);
    assert.match(String(holds(later, {})[0]), /answered a promise; it must answer true or false, at once/);
    assert.match(String(holds(where.any(truthy), {})[0]), /answered "yes"; it must answer true or false/);
  });

  test("nonsensical predicates are refused when they are made", () => {
    const bad: [() => unknown, RegExp][] = [
      [() => where.equals("a..b", 1), /path "a\.\.b" is not/],
      [() => where.equals(5 as never, 1), /path 5 must be a string/],
      [() => where.equals("a", () => 1), /where is a function/],
      [() => where.oneOf("a", []), /has no values/],
      [() => where.above("a", "3" as never), /"3" is not a number/],
      [() => where.all(), /where\.all\(\) has no predicates/],
      [() => where.not("x" as never), /"x" is not a predicate/],
      [() => where.changed("a", { form: 1 } as never), /did you mean "from"/],
    ];
    for (const [make, message] of bad) assert.throws(make, { code: "invalid", message });
  });
});

describe("a definition", () => {
  const run = (): void => undefined;

  test("says in words what it hears and when it acts", () => {
    const lamp = defineLive("lamp", {
      on: ["motion.*", "door.front"],
      live: true,
      where: [where.equals("on", true), where.exists("room")],
      debounce: "5s",
      throttle: "1m",
      run,
    });

    assert.equal(
      lamp.describe(),
      "motion.*, door.front where on = true and room is there after 5s of quiet at most once in 1m",
    );
  });

  test("options that are wrong, or would do nothing, are refused with what to do", () => {
    const bad: [Record<string, unknown>, RegExp][] = [
      [{ on: [] }, /hears 0 things/],
      [{ on: "a..b" }, /"a\.\.b" has an empty segment/],
      [{ on: 5 }, /listener "x" hears 5/],
      [{ debounse: "1s" }, /did you mean "debounce"/],
      [{ debounce: 0 }, /debounce of listener "x" is 0; it must be at least 1ms/],
      [{ throttle: "soon" }, /throttle of listener "x" is "soon", which is not a duration/],
      [{ mode: "serial" }, /mode of listener "x" "serial" is not known\. Known: parallel, single, restart, queued/],
      [{ mode: "single", concurrency: 2 }, /has a concurrency, which is for mode "parallel"/],
      [{ backlog: 2 }, /has a backlog, which is for mode "queued"/],
      [{ for: "1m" }, /has "for" but no "where"/],
      [{ for: "1m", where: where.exists("a"), debounce: "1s" }, /has both "for" and "debounce"/],
      [{ priority: 1.5 }, /priority 1\.5 is not/],
      [{ tenants: "some" }, /tenants "some" of listener "x" is not "all"/],
      [{ run: undefined }, /listener "x" has no run function/],
      [{ where: 5 }, /5 is not a predicate/],
    ];
    for (const [options, message] of bad) {
      assert.throws(() => defineLive("x", { on: "a", live: true, run, ...options } as never), {
        code: "invalid",
        message,
      });
    }
    assert.throws(() => defineLive("", { on: "a", live: true, run }), {
      code: "invalid",
      message: /listener name "" is empty/,
    });
  });
});
