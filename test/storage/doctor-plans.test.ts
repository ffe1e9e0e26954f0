// How SQLite would run the questions of doctor: it keeps to the order of a statement and knows no hashed join, so a lookup that no
// index narrows to the rows of one thing reads those of all others as well, and examining ten thousand rows takes minutes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checks } from "../../src/book/doctor.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { openTest } from "../support/open-test.ts";

/** What thousands of rows may have in common. */
const shared = new Set(["tenant_id", "type_seq", "commit_id", "to_commit", "schedule_seq"]);

/** Lookups by nothing else that still read a row each, or each row once. */
const fine = [
  "a decision that fired names a job of its schedule, unless that left by retention: eviction (tenant_id)",
  "a decision that published names an event, unless that left by retention: eviction (tenant_id)",
  "an event that was published to listeners has their deliveries, unless these left by retention: eviction (tenant_id)",
  // The highest.
  "commits are numbered without gaps up to the head, and their times go back only where the clock was set back: made (tenant_id)",
  // All changes of a commit are counted, once.
  "every version has its commit, and every commit its changes: change (tenant_id, commit_id)",
  // The latest.
  "no schedule has decided slots that are still to come: decision (tenant_id, schedule_seq)",
  // As many as there are names of data.
  "rollups count every run up to the mark: eviction (tenant_id)",
];

test("doctor looks nothing up by what thousands of rows have in common", async (t) => {
  const { book } = await openTest(t, "sqlite");
  const { store } = roomsOf(book);

  const found: string[] = [];
  for (const { name, find } of checks) {
    const plan = await store.readHeavy<{ detail: string }>(
      sql`explain query plan ${find("sqlite", store.clock.now())}`,
    );
    for (const { detail } of plan) {
      const [, table = "", by = ""] = /^SEARCH (\w+).* \((.*)\)/.exec(detail) ?? [];
      const columns = by.split(" AND ").map((part) => /^[\w<]+/.exec(part)?.[0].replace("<", "") ?? "");
      if (columns.every((column) => shared.has(column))) found.push(`${name}: ${table} (${columns.join(", ")})`);
    }
  }

  assert.deepEqual(found.toSorted(), fine);
});
