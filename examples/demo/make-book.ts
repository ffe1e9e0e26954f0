// Makes a book with a day of history, and says what is in it: for tests, screenshots and whoever wants to look at one.
//
//   node --conditions=@daybook/source examples/demo/make-book.ts demo.db
//   … make-book.ts demo.db 2026-11-19T12:00:00Z 0.5 2     until then, half a day, twice as busy
import { open } from "daybook";
import { makeHistory } from "./history.ts";

const [url = "demo.db", now, days = "1", scale = "1"] = process.argv.slice(2);
const began = performance.now();
await makeHistory(url, {
  ...(now === undefined ? {} : { now: Date.parse(now) }),
  days: Number(days),
  scale: Number(scale),
});
const seconds = Number(((performance.now() - began) / 1000).toFixed(1));

await using book = await open(url, { attach: false });
const [counts] = await book.read(
  (tx) => tx.sql<Record<string, number>>`select (select count(*) from daybook_run) as runs,
    (select count(*) from daybook_event) as events, (select count(*) from daybook_call) as calls,
    (select count(*) from daybook_record_commit) as commits, (select count(*) from daybook_session) as sessions,
    (select count(*) from daybook_line) as open, (select count(*) from daybook_dead_letter) as "deadLetters"`,
);
console.log(JSON.stringify({ seconds, ...counts, findings: await book.doctor() }));
