import assert from "node:assert/strict";
import { test } from "node:test";
import { createLiveLine } from "../../src/cli/live-line.ts";
import { createWorkReport, oneLine, type WorkReport } from "../../src/cli/work-report.ts";
import { manualClock } from "../../src/index.ts";
import type { LiveRunEnded } from "../../src/events/live/live-run.ts";
import type { JobEnded } from "../../src/jobs/kind.ts";

const begun = { location: "shop.db", session: "s", names: ["greet"], running: () => 3 };
const boom = { type: "Error", message: "boom", trace: null };

test("the live line counts what runs, is done and failed, and how many per second", async () => {
  const { clock, report, lines } = onTerminal();

  report.begin(begun);
  for (let index = 0; index < 40; index++) report.ended(ended("completed"), null);
  await clock.advance(1000);

  assert.deepEqual(lines(), ["works on shop.db as session s: greet", "3 running · 40 done · 0 failed · 40 per second"]);
});

test("a failure stays above the live line, and the end replaces it", async () => {
  const { clock, report, lines } = onTerminal();

  report.begin(begun);
  report.ended(ended("failed"), boom);
  await clock.advance(500);
  report.stopping();
  report.end();
  await clock.advance(5000);

  const [, failure = "", stopping, stopped, ...rest] = lines();
  assert.match(failure, /Z failed greet j in 2 ms: Error: boom$/);
  assert.equal(stopping, "stopping: waiting for what runs; press Ctrl-C again to end at once");
  assert.equal(stopped, "stopped: 0 done, 1 failed");
  assert.deepEqual(rest, [""]);
});

test("what will be tried again is told from what failed for good", () => {
  const { report, lines } = onTerminal();

  report.begin(begun);
  report.ended({ ...ended("failed"), retriedBy: "k" }, boom);
  report.ended(ended("failed"), boom);
  report.end();

  assert.equal(lines().at(-2), "stopped: 0 done, 2 failed, 1 of them to be tried again");
});

test("what a handler prints stands above the live line, also in pieces", async () => {
  const { clock, live, report, lines, write } = onTerminal();
  const print = (text: string): void => {
    live.makeRoom(text);
    write(text);
  };

  report.begin(begun);
  print("Hello, ");
  await clock.advance(1000);
  print("Ada.\n");
  await clock.advance(1000);
  print("half a line");
  report.ended(ended("failed"), boom);

  const [, hello, half, failure = ""] = lines();
  assert.deepEqual([hello, half], ["Hello, Ada.", "half a line"]);
  assert.match(failure, /failed greet/);
});

test("a job that was cancelled is neither done nor failed", () => {
  let text = "";
  const report = createWorkReport({ write: (part: string) => (text += part) }, "lines", manualClock());

  report.ended({ ...ended("completed"), status: "cancelled" }, null);
  report.end();

  assert.match(text, /^\S+Z cancelled greet j in 2 ms\nstopped: 0 done, 0 failed\n$/);
});

test("runs of live listeners are told: each on its own line, and on a terminal those that failed or were skipped", async () => {
  const { clock, report, lines } = onTerminal();
  let text = "";
  const plain = createWorkReport({ write: (part: string) => (text += part) }, "lines", manualClock());
  const failed = { ...heard("error"), error: { type: "Error", message: "no lamp" } };

  report.begin(begun);
  for (const each of [report, plain]) for (const run of [heard("success"), failed, heard("skipped")]) each.heard(run);
  await clock.advance(1000);
  for (const each of [report, plain]) each.end();

  const [, failure = "", skipped = "", stopped] = lines();
  assert.match(failure, /Z error default\/lamp\/0\/on r heard motion\.hall in 2 ms: Error: no lamp$/);
  assert.match(skipped, /Z skipped default\/lamp\/0\/on r heard motion\.hall in 2 ms$/);
  assert.equal(stopped, "stopped: 0 done, 0 failed; 3 live runs, 1 of them failed");
  assert.match(text, /^\S+Z success default\/lamp\/0\/on r heard motion\.hall in 2 ms\n\S+Z error .*\n\S+Z skipped /);
});

function heard(status: LiveRunEnded["status"]): LiveRunEnded {
  const run = { tenant: "default", name: "default/lamp/0/on", runId: "r", topic: "motion.hall", durationMs: 2 };
  return { ...run, status, error: null };
}

function ended(status: "completed" | "failed"): JobEnded {
  const run = {
    id: "r",
    status: status === "completed" ? ("success" as const) : ("error" as const),
    durationMs: 2,
    error: null,
  };
  return { tenant: "default", id: "j", name: "greet", status, attempt: 1, run, retriedBy: null };
}

type Terminal = {
  readonly clock: ReturnType<typeof manualClock>;
  readonly live: ReturnType<typeof createLiveLine>;
  readonly report: WorkReport;
  write(part: string): void;
  /** What is seen: a carriage return and an erasure take away what was on the line. */
  lines(): string[];
};

function onTerminal(): Terminal {
  const clock = manualClock();
  let text = "";
  const write = (part: string): void => void (text += part);
  const live = createLiveLine({ write }, clock);
  const lines = (): string[] => text.split("\n").map((line) => line.split("\r\u001B[K").at(-1) ?? "");
  return { clock, live, report: createWorkReport({ write }, live, clock), write, lines };
}

test("what the process says of its work is told as it happens: what retention removed, and what went wrong", () => {
  const line = { event: "retention.removed", message: "retention removed what is old (jobs: 3)", removed: { jobs: 3 } };
  let text = "";
  const out = { write: (part: string) => (text += part) };
  const failed = {
    event: "retention.failed",
    message: "retention failed: no\u001B[1m disk",
    error: new Error("no disk"),
  };

  createWorkReport(out, "lines", manualClock()).said({ level: "info", ...line });
  createWorkReport(out, "lines", manualClock()).said({ level: "warn", ...failed });
  createWorkReport(out, "json", manualClock()).said({ level: "info", ...line });
  const terminal = onTerminal();
  terminal.report.begin(begun);
  terminal.report.said({ level: "info", ...line });

  const [removed = "", wrong, object = "{}"] = text.split("\n");
  const { at, ...said } = JSON.parse(object) as Record<string, unknown>;
  assert.match(removed, /^\S+Z retention removed what is old \(jobs: 3\)$/);
  assert.equal(wrong, "! retention failed: no disk");
  assert.deepEqual(said, { type: line.event, level: "info", message: line.message, removed: { jobs: 3 } });
  assert.equal(removed.startsWith(String(at)), true);
  assert.match(terminal.lines().at(1) ?? "", /retention removed what is old/);
});

test("text from the book stays on its line and within its length", () => {
  assert.equal(oneLine("a\u001B[31mb\r\n\tc\u0000d", 60), "ab c d");
  assert.equal(oneLine("abcdef", 4), "abc…");
});
