// Which process runs an app, and what becomes of an app that none runs any more.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { app, manualClock, where, type App, type AppInstance, type AnyApp, type Book } from "../../src/index.ts";
import { removeApp } from "../../src/apps/remove.ts";
import type { Engine } from "../../src/jobs/engine.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import type { Store } from "../../src/storage/store.ts";
import { backends, openTest } from "../support/open-test.ts";
import { openBeside, whileTimePasses } from "../support/session-row.ts";

const noon = Date.UTC(2026, 0, 15, 12);

const lampOf = (setup: (home: App) => void, instances: readonly Record<string, never>[] = [{}]): AnyApp =>
  app("lamp", { setup, instances });

const hourly = (home: App): void => void home.every("1h", { name: "hourly" }, () => undefined);

async function seen(by: Book): Promise<[summary: string, each: string[]][]> {
  const { instances } = await by.apps.get("lamp");
  const named = ({ sessionId, status }: AppInstance["processes"][number]): string => `${sessionId} ${status}`;
  return instances.map(({ status, processes }) => [status, processes.map(named).toSorted()]);
}

for (const backend of backends) {
  describe(`the processes of an app on ${backend}`, () => {
    test("an instance says of each process whether it runs there; it is stopped only when none runs it", async (t) => {
      const clock = manualClock({ at: noon });
      const { book: one, url } = await openTest(t, backend, { use: [lampOf(hourly)], clock });
      const two = await openBeside(t, backend, { use: [lampOf(hourly)], url, clock });
      const first = one.sessionId;
      const second = two.sessionId;

      assert.deepEqual(await seen(one), [["running", [`${first} running`, `${second} running`].toSorted()]]);
      const [instance] = (await two.apps.get("lamp")).instances;
      assert.deepEqual(new Set(instance?.processes.map(({ pid }) => pid)), new Set([process.pid]));

      await two.apps.stop("lamp");
      assert.deepEqual(await seen(one), [["running", [`${first} running`, `${second} stopped`].toSorted()]]);
      await whileTimePasses(clock, two.close());
      assert.deepEqual(await seen(one), [["running", [`${first} running`]]]);
      await one.apps.stop("lamp");
      assert.deepEqual(await seen(one), [["stopped", [`${first} stopped`]]]);

      const three = await openBeside(t, backend, { use: [lampOf(hourly)], url, clock });
      assert.deepEqual(await seen(one), [["running", [`${first} stopped`, `${three.sessionId} running`].toSorted()]]);
      const tenants = (await three.tenant("default").apps.get("lamp")).instances[0]?.processes ?? [];
      assert.deepEqual(
        tenants.map(({ host, pid }) => [host, pid]),
        [
          [null, null],
          [null, null],
        ],
      );
    });

    test("an instance that fails in one process goes on in another, and both are shown", async (t) => {
      const clock = manualClock({ at: noon });
      const { book: one, url } = await openTest(t, backend, { use: [lampOf(hourly)], clock });
      const broken = lampOf(() => {
        throw new Error("no lamp here");
      });
      const two = await openBeside(t, backend, { use: [broken], url, clock });

      const [instance] = (await one.apps.get("lamp")).instances;

      assert.deepEqual([instance?.status, instance?.sessionId, instance?.error], ["running", one.sessionId, null]);
      const failed = instance?.processes.find(({ sessionId }) => sessionId === two.sessionId);
      assert.deepEqual([failed?.status, failed?.error?.message], ["failed", "no lamp here"]);
    });

    test("a removed app's schedules decide nothing more; what has run of it stays, the rest goes", async (t) => {
      const clock = manualClock({ at: noon });
      const rooms = lampOf(
        (home) => {
          home.every("1h", { name: "hourly" }, () => undefined);
          home.every("2h", { name: "never fired" }, () => undefined);
          home.on("bell", { name: "never rang" }, () => undefined);
        },
        [{}, {}],
      );
      const { book: before, url } = await openTest(t, backend, { use: [rooms], clock });
      const worker = await before.startWorker();
      await before.schedules.trigger("default/lamp/0/hourly");
      await worker.idle();
      await before.apps.stop("lamp");
      const { jobId } = await before.schedules.trigger("default/lamp/1/hourly");
      await before.close();
      const { book } = await openTest(t, backend, { url, clock });

      const counts = { listeners: 2, schedules: 4, jobs: 0 };
      const expected = { key: "lamp", instances: 2, ...counts, kept: 1 };
      assert.deepEqual(await book.apps.remove("lamp", { dryRun: true }), { ...expected, dryRun: true });
      assert.equal((await book.schedules.list()).items.length, 4);
      assert.deepEqual(await book.apps.remove("lamp"), { ...expected, dryRun: false });

      assert.deepEqual(await book.apps.list(), []);
      assert.deepEqual((await book.schedules.list()).items, []);
      assert.equal((await book.jobs.get(jobId ?? "")).status, "cancelled");
      const { instances, registered } = await book.apps.get("lamp");
      assert.deepEqual(instances, []);
      assert.deepEqual(
        registered.map(({ instance, name, retiredAt, lastRun }) => [
          instance,
          name,
          retiredAt !== null,
          lastRun?.status,
        ]),
        [[0, "hourly", true, "success"]],
      );
      await book.startWorker();
      await clock.advance(3 * 3_600_000);
      assert.equal((await book.jobs.list()).items.length, 2);
      assert.deepEqual(await book.doctor(), []);
    });

    test("an app that a process runs is not removed", async (t) => {
      const clock = manualClock({ at: noon });
      const { book: one, url } = await openTest(t, backend, { use: [lampOf(hourly)], clock });
      const other = await openBeside(t, backend, { url, clock });

      const refused = /^instance 0 of app "lamp" runs in session \S+ \(process \d+ on .+\): stop it there first$/;
      await assert.rejects(other.apps.remove("lamp"), { code: "conflict", message: refused });
      await assert.rejects(other.apps.remove("lamp", { dryRun: true }), { code: "conflict" });
      await assert.rejects(other.apps.remove("lmp"), /there is no app "lmp": did you mean "lamp"\?/);
      await one.apps.stop("lamp");

      assert.equal((await other.apps.remove("lamp")).schedules, 1);
    });

    test("an app that a process starts while it is being removed stays as it is", async (t) => {
      const clock = manualClock({ at: noon });
      const { book: one, url } = await openTest(t, backend, { use: [lampOf(hourly)], clock });
      await one.apps.stop("lamp");
      const other = await openBeside(t, backend, { url, clock });
      const { jobs } = roomsOf(other);
      // It has found the app stopped, and is about to write.
      const write: Store["write"] = async (unit, options) => {
        await one.apps.reload("lamp");
        return jobs.store.write(unit, options);
      };
      const store = Object.create(jobs.store, { write: { value: write } }) as Store;
      const engine = Object.create(jobs, { store: { value: store } }) as Engine;

      const refused = /^instance 0 of app "lamp" runs in session \S+ \(process \d+ on .+\): stop it there first$/;
      await assert.rejects(removeApp(engine, "default", "lamp"), { code: "conflict", message: refused });

      const { instances, registrations } = await other.apps.get("lamp");
      assert.deepEqual([instances[0]?.status, registrations.schedules], ["running", 1]);
      assert.equal((await other.schedules.list()).items.length, 1);
    });

    test("a registration shows its params, its last run and when it is next due", async (t) => {
      const clock = manualClock({ at: noon });
      const lamp = lampOf((home) => {
        home.every("1h", { name: "hourly", params: { room: "hall", since: new Date(noon) } }, () => undefined);
        home.daily("07:00", { name: "morning", params: [1, 2] }, () => undefined);
        home.on("bell", { name: "ring" }, () => {
          throw new Error("no bell");
        });
        home.job({ name: "work" }, () => undefined);
      });
      const { book } = await openTest(t, backend, { use: [lamp], clock });
      const worker = await book.startWorker();
      for (let fires = 0; fires < 2; fires++) {
        await book.schedules.trigger("default/lamp/0/hourly");
        await worker.idle();
        await clock.advance(1000);
      }
      book.events.emit("bell");
      await book.schedules.pause("default/lamp/0/morning");
      while ((await book.runs.list()).items.length < 3) await clock.advance(50);

      const { registered } = await book.apps.get("lamp");
      const [newest] = (await book.runs.list({ name: "hourly" })).items;

      assert.deepEqual(
        registered.map(({ name, params, lastRun, nextAt }) => [name, params, lastRun?.status, nextAt]),
        [
          ["hourly", { room: "hall", since: "2026-01-15T12:00:00.000Z" }, "success", noon + 3_600_000],
          ["morning", [1, 2], undefined, null],
          ["ring", null, "error", null],
          ["work", null, undefined, null],
        ],
      );
      assert.deepEqual(registered[0]?.lastRun, { id: newest?.id, status: "success", endedAt: newest?.endedAt });
    });

    test("a live listener of an app is listed with the processes in which it hears", async (t) => {
      const clock = manualClock({ at: noon });
      const hears = lampOf((home) => {
        home.on(["motion.*", "bell"], { name: "on", where: where.equals("moving", true) }, () => undefined);
        home.on("bell", { name: "ring" }, () => undefined);
        home.every("1h", { name: "hourly" }, () => undefined);
      });
      const { book: one, url } = await openTest(t, backend, { use: [hears], clock });
      const two = await openBeside(t, backend, { use: [hears], url, clock });
      const both = [one.sessionId, two.sessionId];
      const on = { app: "lamp", instance: 0, name: "on", topics: ["motion.*", "bell"], where: "moving = true" };
      const ring = { app: "lamp", instance: 0, name: "ring", topics: ["bell"], where: null };

      assert.deepEqual(await two.apps.listeners(), [
        { ...on, sessionIds: both },
        { ...ring, sessionIds: both },
      ]);
      await one.apps.stop("lamp");
      assert.deepEqual(await one.apps.listeners(), [
        { ...on, sessionIds: [two.sessionId] },
        { ...ring, sessionIds: [two.sessionId] },
      ]);
      await two.apps.stop("lamp");
      assert.deepEqual(await one.apps.listeners(), []);
      assert.deepEqual(await one.tenant("acme").apps.listeners(), []);
    });

    test("a failed setup says where in the source it failed; one that throws nowhere of its own, where the app is defined", async (t) => {
      const clock = manualClock({ at: noon });
      const throws = app("throws", {
        setup() {
          throw new Error("no lamp found");
        },
      });
      const misuses = app("misuses", { setup: (home) => void home.every("5x", { name: "x" }, () => undefined) });
      const hangs = app("hangs", { timeout: 1, setup: () => new Promise(() => undefined) });
      const opening = openTest(t, backend, { use: [throws, misuses, hangs], clock });
      const { book } = await whileTimePasses(clock, opening, 10);

      const lines = (await book.apps.list()).map(({ key, instances }) => `${key} ${instances[0]?.error?.at}`);

      const [, here] = /^throws (.*apps-processes\.test\.ts):\d+$/.exec(lines[2] ?? "") ?? [];
      assert.ok(here !== undefined, lines.join("\n"));
      const at = lines.map((line) => Number(line.split(":").at(-1)));
      const [hung = 0, misused = 0, thrown = 0] = at;
      assert.deepEqual([misused - thrown, hung - thrown], [3, 4]);
    });
  });
}
