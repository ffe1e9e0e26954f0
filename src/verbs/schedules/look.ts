// schedules list, show, decisions and why: what there is to know about schedules.
import type { DecisionRecord, ScheduleRecord } from "../../index.ts";
import { paged } from "../cursor.ts";
import { page, text, time } from "../field.ts";
import { decisionTable, schedulePage, scheduleTable } from "../schedule-view.ts";
import { section } from "../shown.ts";
import { verb } from "../verb.ts";

const name = text("the name of the schedule", "name");

/** So many decisions are shown with their schedule. */
const newestMax = 10;

export const look = {
  list: verb({
    words: "schedules list",
    http: "GET /schedules",
    role: "read",
    about: "list schedules by name",
    input: page,
    examples: ["schedules list"],
    run: (book, input) => paged(book, "schedules", input, (filter) => book.schedules.list(filter)),
    show: ({ items }) => scheduleTable(items),
  }),

  show: verb({
    words: "schedules show <name>",
    http: "GET /schedules/{name}",
    role: "read",
    about: "show one schedule, and what was made of its newest slots",
    more: `The newest ${newestMax} decisions are shown; "schedules decisions" lists all of them.`,
    input: { name },
    examples: ["schedules show receipts"],
    async run(book, input): Promise<ScheduleRecord & { readonly decisions: readonly DecisionRecord[] }> {
      const schedule = await book.schedules.get(input.name);
      const { items } = await book.schedules.decisions(input.name, { limit: newestMax });
      return { ...schedule, decisions: items };
    },
    show: ({ decisions, ...schedule }) => [
      ...schedulePage(schedule),
      section("decisions", decisionTable(decisions, "No slot has been decided.")),
    ],
  }),

  decisions: verb({
    words: "schedules decisions <name>",
    http: "GET /schedules/{name}/decisions",
    role: "read",
    about: "list what was made of each slot of a schedule, the newest first",
    more: `Slots that were skipped in a row may stand in one decision, with the first and the last of them.`,
    input: { name, ...page },
    examples: ["schedules decisions receipts --limit 5"],
    run: (book, { name: schedule, ...asked }) =>
      paged(book, `decisions of ${schedule}`, asked, (filter) => book.schedules.decisions(schedule, filter)),
    show: ({ items }) => decisionTable(items, "No slot has been decided, or none before that cursor."),
  }),

  why: verb({
    words: "schedules why <name> <time>",
    http: "GET /schedules/{name}/why",
    role: "read",
    about: "say why a schedule did, or did not, run at a time",
    more: "A time that is a whole minute stands for the minute.",
    input: { name, time: time("ISO 8601 with a zone") },
    examples: ["schedules why receipts 2026-03-29T05:00:00Z"],
    run: (book, input) => book.schedules.why(input.name, input.time),
    show: ({ decision, because }) => [decision?.kind ?? "no decision", ...because],
  }),
};
