import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { plainLine, plainLines } from "../../src/verbs/plain.ts";
import { render, widthOf, type Paper } from "../../src/verbs/render.ts";
import {
  ago,
  bytes,
  count,
  fields,
  copied,
  asJson,
  lines,
  row,
  section,
  sentence,
  state,
  table,
  when,
  words,
} from "../../src/verbs/shown.ts";

const now = Date.parse("2026-11-18T12:00:00Z");
const pipe: Paper = { width: null, colour: false, zone: "UTC", now };
const terminal = (width: number, zone = "Europe/Madrid"): Paper => ({ width, colour: false, zone, now });

type Row = { readonly id: string; readonly name: string; readonly at: number; readonly note: string };
const columns = {
  id: (row: Row) => copied(row.id),
  name: (row: Row) => row.name,
  status: () => state("failed"),
  try: () => 1,
  at: (row: Row) => when(row.at),
  note: (row: Row) => row.note,
};
const rows: Row[] = [
  {
    id: "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e",
    name: "send-receipt",
    at: now - 3_600_000,
    note: "TypeError: no\ncard",
  },
  {
    id: "019a3c5e-7a04-7000-8000-91d2c40ee3a7",
    name: "領収書を送る",
    at: now - 86_400_000 * 40,
    note: "x".repeat(200),
  },
];

test("a table has one line for each row and fits every terminal that its ids fit", () => {
  for (const width of [70, 80, 100, 120, 200]) {
    const text = render(table(rows, columns, { least: ["try", "at"] }), terminal(width));

    assert.equal(text.split("\n").length, 3);
    for (const line of text.split("\n")) assert.ok(widthOf(line) <= width, `${width}: ${line}`);
    for (const row of rows) assert.ok(text.includes(row.id));
  }
});

test("times of a table are exact where there is room, then short, then they give way", () => {
  const given = table(rows.slice(0, 1), columns, { least: ["at"] });

  assert.match(render(given, terminal(140)), / 2026-11-18 12:00:00 {2}/);
  assert.match(render(given, terminal(86)), / 12:00:00 {2}/);
  assert.doesNotMatch(render(given, terminal(70)), /12:00/);
});

test("a pipe gets tabs, whole values and exact times", () => {
  const text = render(table(rows, columns), pipe);

  assert.deepEqual(
    text.split("\n").map((line) => line.split("\t").length),
    [6, 6, 6],
  );
  assert.match(text, /\tsend-receipt\tfailed\t1\t2026-11-18T11:00:00\.000Z\tTypeError: no card\n/);
  assert.ok(text.includes("x".repeat(200)));
  assert.equal(render(table([], columns, { none: "There are none." }), pipe), "id\tname\tstatus\ttry\tat\tnote");
  assert.equal(render(table([], columns, { none: "There are none." }), terminal(80)), "There are none.");
});

test("times are shown in the reader's zone, also when its clock was set, and in UTC on request", () => {
  const shown = fields({
    summer: when(Date.parse("2026-07-01T12:00:00Z")),
    winter: when(now - 60_000),
    never: when(null),
  });

  assert.equal(
    render(shown, terminal(80)),
    "summer  2026-07-01 14:00:00+02:00 (140d ago)\nwinter  2026-11-18 12:59:00+01:00 (1m ago)",
  );
  assert.equal(render(shown, terminal(80, "UTC")).split("\n")[1], "winter  2026-11-18 11:59:00Z (1m ago)");
  assert.equal(
    render(shown, { ...pipe, zone: "Asia/Kolkata" }).split("\n")[0],
    "summer\t2026-07-01T17:30:00.000+05:30",
  );
  assert.equal(render(sentence("starts", ago(now + 61_000)), terminal(80)), "starts in 1m 1s");
  assert.equal(render(sentence("starts", ago(now + 61_000)), pipe), "starts 2026-11-18T12:01:01.000Z");
});

test("an item of a stream is one line that fits, or values between tabs", () => {
  const item = row(when(now), "order.paid", "x".repeat(100));

  assert.equal(render(item, terminal(40)), `2026-11-18 13:00:00  order.paid  ${"x".repeat(6)}…`);
  assert.equal(render(item, pipe), `2026-11-18T12:00:00.000Z\torder.paid\t${"x".repeat(100)}`);
});

test("nothing that is shown commands a terminal, breaks a line or turns the direction of reading", () => {
  const evil = "\u001B[2Ja\u009B31mb\r\nc\u202Ed\u0007\u2066e\u0000";
  const shown = [
    evil,
    table([evil], {
      a: (each) => each,
      b: (each) => copied(each),
      c: (each) => state(each),
      d: (each) => words(each, each),
    }),
    fields({ [evil]: evil }),
    sentence(evil),
    section(evil, asJson({ [evil]: evil }), lines(evil)),
  ];

  for (const paper of [pipe, terminal(80)]) {
    const text = render(shown, paper);

    assert.doesNotMatch(text.replaceAll(/[\n\t]/g, ""), /[\p{Cc}\u202A-\u202E\u2066-\u2069\u2028\u2029]/u);
    assert.equal(stripVTControlCharacters(text), text);
    assert.ok(text.includes(String.raw`\u202e`));
  }
});

test("a text of beginnings without an end is made plain in one pass, and what has an end is taken away whole", () => {
  const begun = process.threadCpuUsage();

  // What looks from each beginning to the end of the text takes minutes of the processor for this.
  for (const start of ["\u001B]", "\u009D", "\u001B[", "\u009B", "\u001B[0;", "\u001B]a\u009D"]) {
    const plain = plainLine(start.repeat(2 ** 19));
    assert.doesNotMatch(plain, /\p{Cc}/u);
    assert.doesNotMatch(plainLines(start.repeat(2 ** 19)), /\p{Cc}/u);
  }

  const { user, system } = process.threadCpuUsage(begun);
  assert.ok(user + system < 5_000_000, `${user + system} µs`);
  assert.equal(plainLine("a\u001B]0;title\u0007b\u009D8;;x\u009Cc\u001B]2;y\u001B\\d\u001B[1;31me\u009B0mf"), "abcdef");
});

test("what is counted is counted in right grammar", () => {
  assert.deepEqual(
    [count(0, "job"), count(1, "job"), count(2, "job"), count(1, "entry", "entries"), count(3, "entry", "entries")],
    ["0 jobs", "1 job", "2 jobs", "1 entry", "3 entries"],
  );
});

test("sizes are shown in the unit that keeps them short", () => {
  assert.deepEqual([0, 1, 1023, 1024, 1536, 1024 ** 2, 3.2 * 1024 ** 3, 5000 * 1024 ** 4].map(bytes), [
    "0 B",
    "1 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "1.0 MiB",
    "3.2 GiB",
    "5000.0 TiB",
  ]);
});

test("a moment is shown by its distance and exactly", () => {
  const shown = (ms: number | null): string => render(fields({ at: when(ms) }), terminal(80, "UTC"));

  assert.equal(shown(now), "at  2026-11-18 12:00:00Z (now)");
  assert.equal(shown(now - 3_661_000), "at  2026-11-18 10:58:59Z (1h 1m ago)");
  assert.equal(shown(now + 61_000), "at  2026-11-18 12:01:01Z (in 1m 1s)");
  assert.equal(render(fields({ at: when(0) }), pipe), "at\t1970-01-01T00:00:00.000Z");
  assert.equal(shown(null), "");
});
