// schedules: what was made of their slots, and steering them.
import type { DecisionRecord, ScheduleRecord } from "../../index.ts";
import { paged } from "../list.ts";
import { text, time } from "../field.ts";
import { noted, rehearsing } from "../shared-fields.ts";
import { ago, count, section, sentence, table, when } from "../shown.ts";
import { operate, read } from "../verb.ts";
import { make } from "./schedule-make.ts";
import { decisionTable, schedulePage, scheduleTable } from "./schedule-view.ts";

const name = text("the name of the schedule", "name");

/** So many decisions are shown with their schedule. */
const newestMax = 10;

export const schedules = {
  list: paged({
    words: "schedules list",
    about: "list schedules by name",
    find: (book, asked) => book.schedules.list(asked),
    ...scheduleTable,
    none: "There are no such schedules, or none after that cursor.",
  }),

  show: read({
    words: "schedules show <name>",
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
      section(
        "decisions",
        table(decisions, decisionTable.columns, { ...decisionTable, none: "No slot has been decided." }),
      ),
    ],
  }),

  decisions: paged({
    words: "schedules decisions <name>",
    about: "list what was made of each slot of a schedule, the newest first",
    more: `Slots that were skipped in a row may stand in one decision, with the first and the last of them.`,
    input: { name },
    examples: ["schedules decisions receipts --limit 5"],
    find: (book, { name: schedule, ...asked }) => book.schedules.decisions(schedule, asked),
    ...decisionTable,
  }),

  why: read({
    words: "schedules why <name> <time>",
    about: "say why a schedule did, or did not, run at a time",
    more: "A time that is a whole minute stands for the minute.",
    input: { name, time: time("ISO 8601 with a zone") },
    examples: ["schedules why receipts 2026-03-29T05:00:00Z"],
    run: (book, input) => book.schedules.why(input.name, input.time),
    show: ({ decision, because }) => [decision?.kind ?? "no decision", ...because],
  }),

  pause: operate({
    words: "schedules pause <name>",
    about: "let a schedule fire no more until it is resumed",
    more: "Its jobs go on. What is due while it is paused is kept as one decision, and is not made up for.",
    input: { name, ...noted },
    examples: ['schedules pause receipts --note "the mail server is moved"'],
    async run(book, { name: schedule, note }) {
      await book.schedules.pause(schedule, note);
      return book.schedules.get(schedule);
    },
    show: (schedule) => `${schedule.name} is paused`,
  }),

  resume: operate({
    words: "schedules resume <name>",
    about: "let a schedule go on with its next slot",
    input: { name },
    examples: ["schedules resume receipts"],
    async run(book, { name: schedule }) {
      await book.schedules.resume(schedule);
      return book.schedules.get(schedule);
    },
    show: (schedule) =>
      schedule.nextAt === null
        ? `${schedule.name} is resumed and is over`
        : sentence(`${schedule.name} is resumed and fires next`, ago(schedule.nextAt)),
  }),

  rename: operate({
    words: "schedules rename <name> <to>",
    about: "give a schedule another name",
    more: `It stays the same schedule: its decisions and its place in time are kept, so no slot is lost or fired twice.
One that is defined in code is made anew by a program that still has its old name: stop such programs, rename it, and start those that
have the new name. One that is for all tenants is renamed for all of them, unless a tenant is named (forbidden).
Schedules of apps are renamed in the app (conflict, exit code 5).`,
    input: { name, to: text("its new name", "name") },
    examples: ["schedules rename receipts morning-receipts"],
    // A caller that speaks for one tenant must not rename what others have.
    run: (book, { name: schedule, to }, { tenant }) =>
      (tenant === null ? book : book.tenant(tenant)).schedules.rename(schedule, to),
    show: ({ name: renamed, warning }) => [
      `the schedule is named ${renamed}`,
      ...(warning === null ? [] : [`Careful: ${warning}`]),
    ],
  }),

  remove: operate({
    words: "schedules remove <name>",
    http: "DELETE /schedules/{name}",
    about: "remove a schedule",
    more: `Its jobs and its decisions stay. A schedule that is defined in code comes back with it: remove it there, or
pause it (conflict, exit code 5).`,
    input: { name },
    examples: ["schedules remove receipts"],
    async run(book, { name: schedule }) {
      await book.schedules.remove(schedule);
      return { name: schedule, removed: true };
    },
    show: (done) => `${done.name} is removed`,
  }),

  trigger: operate({
    words: "schedules trigger <name>",
    about: "fire a schedule once, now",
    more: "It also fires while it is paused, and beside a job of it that runs. This counts as no slot and moves none.",
    input: { name },
    examples: ["schedules trigger receipts"],
    async run(book, { name: schedule }) {
      const { jobId, eventId } = await book.schedules.trigger(schedule);
      return { name: schedule, jobId, eventId };
    },
    show: ({ name: schedule, jobId, eventId }) =>
      jobId === null ? `${schedule} published event ${eventId}` : `${schedule} made job ${jobId}`,
  }),

  backfill: operate({
    words: "schedules backfill <name> <from> <to>",
    about: "fire the slots of a stretch of the past that were not fired",
    more: `Slots that were fired before are not fired again, and what was skipped is fired now. The jobs are made all
at once, whatever the schedule says about jobs that overlap.`,
    input: {
      name,
      from: time("the first moment, ISO 8601 with a zone"),
      to: time("the last moment, not in the future"),
      ...rehearsing,
    },
    examples: ["schedules backfill receipts 2026-03-01T00:00:00Z 2026-03-08T00:00:00Z --dry-run"],
    async run(book, { name: schedule, from, to, ...options }) {
      const { dryRun, slots, already } = await book.schedules.backfill(schedule, from, to, options);
      return { dryRun, slots: slots.map((at) => ({ at })), already };
    },
    show({ dryRun, slots, already }) {
      const fired = dryRun ? "would be" : slots.length === 1 ? "is" : "are";
      return [
        `${count(slots.length, "slot")} ${fired} fired; ${already} had been before.`,
        ...slots.map(({ at }) => sentence(when(at))),
      ];
    },
  }),

  ...make,
};
