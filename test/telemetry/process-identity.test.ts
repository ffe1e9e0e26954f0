import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { isProvablyGone, type ProcessIdentity, thisProcess } from "../../src/telemetry/process-identity.ts";

const self = thisProcess();
const file = { sameMachine: true };
const server = { sameMachine: false };

function isGone(changes: Partial<ProcessIdentity>, where: { sameMachine: boolean }): boolean {
  return isProvablyGone({ ...self, ...changes }, self, where);
}

test("the process that asks is not gone", () => {
  assert.equal(isGone({}, file), false);
  assert.equal(isGone({}, server), false);
});

test("a pid that nobody has is gone", async () => {
  const pid = await goneProcess();

  assert.equal(isGone({ pid }, file), true);
  assert.equal(isGone({ pid }, server), true);
});

test("a pid that another process has now is gone", () => {
  assert.equal(isGone({ processStarted: "1" }, file), true);
  assert.equal(isGone({ processStarted: "1" }, server), true);
});

test("a pid proves nothing when the start of its process is unknown", () => {
  assert.equal(isGone({ processStarted: null }, file), false);
});

test("a process of another host or pid namespace is not provably gone", async () => {
  const pid = await goneProcess();

  for (const elsewhere of [{ host: "elsewhere" }, { hostNamespace: "pid:[1]" }, { hostNamespace: null }]) {
    assert.equal(isGone({ ...elsewhere, pid }, file), false);
    assert.equal(isGone({ ...elsewhere, pid }, server), false);
    assert.equal(isGone({ ...elsewhere, processStarted: "1" }, file), false);
  }
});

test("a process of an earlier boot is gone for a file book, but not for a server, which has many machines", () => {
  const outside = { ...self, hostNamespace: "pid:[4026531836]" };
  const earlier = { ...outside, hostBoot: "an earlier one" };

  assert.equal(isProvablyGone(earlier, outside, file), true);
  assert.equal(isProvablyGone({ ...earlier, host: "another" }, outside, file), false);
  assert.equal(isProvablyGone(earlier, outside, server), false);
  assert.equal(isProvablyGone({ ...outside, hostBoot: null }, outside, file), false);
});

test("a container may see a boot id of its own, so its processes are not judged by it", () => {
  const inside = { ...self, hostNamespace: "pid:[4026532001]" };

  assert.equal(isProvablyGone({ ...inside, hostBoot: "its own" }, inside, file), false);
  assert.equal(
    isProvablyGone({ ...inside, hostBoot: "its own" }, { ...self, hostNamespace: "pid:[4026531836]" }, file),
    false,
  );
});

test("without boot ids, two machines of one name are not taken for one", async () => {
  const pid = await goneProcess();
  const unknown = { ...self, hostBoot: null, hostNamespace: null };

  assert.equal(isProvablyGone({ ...unknown, pid }, unknown, file), true);
  assert.equal(isProvablyGone({ ...unknown, pid }, unknown, server), false);
});

if (process.platform === "linux") {
  test("a zombie is gone", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    const pid = child.pid ?? 0;
    const processStarted = statOf(pid)[19] ?? "";
    const ended = once(child, "exit");
    assert.equal(isGone({ pid, processStarted }, server), false);

    child.kill("SIGKILL");
    // This process does not get to bury it before it returns to its event loop.
    const deadline = systemClock.monotonic() + 10_000;
    while (statOf(pid)[0] !== "Z") assert.ok(systemClock.monotonic() < deadline);

    assert.equal(isGone({ pid, processStarted }, server), true);
    await ended;
  });

  test("a /proc of another pid namespace is not believed", (t) => {
    // In a namespace of its own, with the /proc of this one, pid 1 is the program itself and /proc/1 somebody else.
    const module = import.meta.resolve("../../src/telemetry/process-identity.ts");
    const program = `import { thisProcess } from ${JSON.stringify(module)};
      console.log(JSON.stringify([process.pid, thisProcess().processStarted]));`;
    const args = ["--pid", "--fork", process.execPath, "--input-type=module", "--eval", program];
    const { status, stdout, stderr } = spawnSync("unshare", args, { encoding: "utf8" });
    if (status !== 0) return t.diagnostic(`this machine lets nobody make a pid namespace: ${stderr}`);

    assert.deepEqual(JSON.parse(stdout), [1, null]);
  });
}

function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

async function goneProcess(): Promise<number> {
  const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(child, "exit");
  return child.pid ?? 0;
}
