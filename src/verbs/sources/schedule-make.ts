// schedules create, edit and preview: when, what and how.
import type { FirePreview, PreviewTiming, ScheduleChanges, ScheduleOptions, ScheduleRecord } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { duration, json, maybe, orNone, text, time, whole, word } from "../field.ts";
import { priority, tags } from "../shared-fields.ts";
import { fireTable, schedulePage } from "./schedule-view.ts";
import { section, type Part } from "../shown.ts";
import { operate, read } from "../verb.ts";

const name = text("the name of the schedule", "name");

const timing = {
  cron: maybe(text('five fields, or six with the seconds first, or "@daily" and the like', "expression")),
  every: maybe(duration("in elapsed time, such as 90s or 6h, without drift", { min: 1 })),
  daily: maybe(text('every day at a time of the zone\'s clock, such as "07:00"', "time")),
  at: maybe(time("once, ISO 8601 with a zone")),
  in: maybe(duration("once, so long from now, such as 10m")),
  zone: maybe(text('the zone whose clock counts, such as Europe/Madrid (default: the book\'s, see "info")', "zone")),
  gap: maybe(word("a time that the clock leaves out (default: shift)", ["shift", "skip"])),
  ambiguous: maybe(word("a time that comes twice (default: first)", ["first", "last", "both"])),
};

const start = time("no slot before this time");
const end = time("no slot at this time or later");
const jitter = duration("fire up to so much later, always by the same amount");

const bounds = { start: maybe(start), end: maybe(end), jitter: maybe(jitter) };
const boundsOrNone = { start: maybe(orNone(start)), end: maybe(orNone(end)), jitter: maybe(orNone(jitter)) };

const what = {
  job: maybe(text("the name of the job that it makes", "name")),
  template: maybe(text("the template that it makes jobs from", "name")),
  event: maybe(text("the topic of the event that it publishes", "topic")),
  params: maybe(json("the params of its jobs as JSON")),
  payload: maybe(json("the payload of its events as JSON")),
  queue: maybe(text("the queue of its jobs", "queue")),
  priority: maybe(priority("the priority of its jobs or events")),
  tags: tags("its jobs"),
  missed: maybe(word("slots that nobody was there for (default: latest)", ["latest", "all", "skip"])),
  overlap: maybe(word("when the job before has not ended (default: skip)", ["skip", "queue", "cancel", "allow"])),
};

const maxLateness = duration("how late a missed slot may still be run");
const maxFires = whole("how often it fires in all", 1);
const pauseAfterFailures = whole("pause after so many failed jobs in a row", 1);

/** Of a job that no program has hosted yet, or whose limits cannot be counted. */
type Warned = { readonly warning: string | null };

export const make = {
  create: operate({
    words: "schedules create <name>",
    http: "POST /schedules",
    about: "make a schedule",
    more: `Give one of --cron, --every, --daily, --at, --in, and one of --job, --template, --event. A job gets the
settings that the program which runs it wrote to the book; one that was never hosted gets them once a
program hosts it. Slots before now are not caught up on.`,
    input: {
      name: text("the name of the schedule, unique within the tenant", "name"),
      ...timing,
      ...bounds,
      ...what,
      maxLateness: maybe(maxLateness),
      maxFires: maybe(maxFires),
      pauseAfterFailures: maybe(pauseAfterFailures),
    },
    examples: [
      "schedules create receipts --daily 07:00 --zone Europe/Madrid --job send-receipts",
      "schedules create poll --every 90s --template poll-orders --overlap queue",
      "schedules create month-end --cron '0 18 LW * *' --job close-month --missed all",
      `schedules create dusk --daily 18:30 --event house.dusk --payload '{"lights": "on"}'`,
    ],
    check: refuseTwoTargets,
    // The library says what is missing, what is too much and what is no such value.
    run: (book, { name: called, ...options }): Promise<ScheduleRecord & Warned> =>
      book.schedules.create(called, options as unknown as ScheduleOptions),
    show: warnedPage,
  }),

  edit: operate({
    words: "schedules edit <name>",
    http: "PUT /schedules/{name}",
    about: "change a schedule; jobs that exist stay as they are",
    more: `What is not given stays, and "none" takes a setting back. Slots before the edit are not caught up on. A
schedule that is defined in code is edited there (conflict, exit code 5). "schedules preview" shows an
edit before it is made.`,
    input: {
      name,
      ...timing,
      ...boundsOrNone,
      ...what,
      maxLateness: maybe(orNone(maxLateness)),
      maxFires: maybe(orNone(maxFires)),
      pauseAfterFailures: maybe(orNone(pauseAfterFailures)),
    },
    examples: ["schedules edit receipts --daily 06:30 --jitter none"],
    check: refuseTwoTargets,
    run: (book, { name: called, ...changes }): Promise<ScheduleRecord & Warned> =>
      book.schedules.edit(called, changes as unknown as ScheduleChanges),
    show: warnedPage,
  }),

  preview: read({
    words: "schedules preview [name]",
    http: "GET /schedule-preview",
    about: "show the next fires, also of an edit or a schedule that is not saved",
    more: `With a name and something to change, the fires are shown as they are and as they would be; nothing is
saved. Without a name, those of the options. Each fire is shown on your clock and on that of the
schedule, and a mark says when a clock is changed that day.`,
    input: {
      name: maybe(name),
      ...timing,
      ...boundsOrNone,
      count: maybe(whole("how many (default: 10)", 1, 1000)),
      here: maybe(text("another zone whose clock is shown, too", "zone")),
      after: maybe(time("fires after this time (default: now)")),
    },
    examples: [
      "schedules preview receipts --count 3",
      "schedules preview receipts --daily 06:30",
      "schedules preview --cron '30 2 * * *' --zone Europe/Madrid --after 2026-03-28T00:00:00Z",
    ],
    async run(book, { name: called, count = 10, here = "UTC", after, ...given }): Promise<Preview> {
      const options = { count, zone: here, ...(after === undefined ? {} : { after }) };
      if (called === undefined) return { fires: await book.schedules.preview(toTiming(given), options) };
      const fires = await book.schedules.preview(called, options);
      if (Object.keys(given).length === 0) return { fires };
      const edit = given as unknown as ScheduleChanges;
      return { before: fires, after: await book.schedules.preview(called, { ...options, edit }) };
    },
    show: (found, { here }) =>
      "fires" in found
        ? fireTable(found.fires, here)
        : [section("as it is", fireTable(found.before, here)), section("as it would be", fireTable(found.after, here))],
  }),
};

type Preview =
  | { readonly fires: readonly FirePreview[] }
  | { readonly before: readonly FirePreview[]; readonly after: readonly FirePreview[] };

/** Of a schedule that is not there yet, "none" takes nothing back. */
function toTiming(given: object): PreviewTiming {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)) as unknown as PreviewTiming;
}

type Targets = { readonly job?: string; readonly template?: string; readonly event?: string };

function refuseTwoTargets({ job, template, event }: Targets): void {
  if ([job, template, event].filter((each) => each !== undefined).length <= 1) return;
  throw invalid("give job, template or event, and not two of them: a schedule fires one thing");
}

function warnedPage({ warning, ...schedule }: ScheduleRecord & Warned): (string | Part)[] {
  return [...schedulePage(schedule), ...(warning === null ? [] : [warning])];
}
