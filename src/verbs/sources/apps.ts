// apps: what runs by name, and what each of them registered.
import type { AppDetails, AppInstance, AppRecord, RegistrationRecord } from "../../index.ts";
import { text } from "../field.ts";
import { errorLine, errorLines } from "../work/job-view.ts";
import { copied, count, fields, lines, section, state, table, when, type Cell, type Part } from "../shown.ts";
import { read } from "../verb.ts";

export const apps = {
  list: read({
    words: "apps list",
    http: "GET /apps",
    about: "list apps by key, with their instances",
    input: {},
    examples: ["apps list"],
    run: async (book) => ({ items: await book.apps.list() }),
    show: ({ items }) => appTable(items),
  }),

  show: read({
    words: "apps show <key>",
    http: "GET /apps/{key}",
    about: "show one app: its instances, and what they registered",
    input: { key: text("the key of the app", "key") },
    examples: ["apps show lights"],
    run: (book, { key }) => book.apps.get(key),
    show: appPage,
  }),
};

type Row = AppInstance & Pick<AppRecord, "key" | "registrations">;

function appTable(items: readonly AppRecord[]): Part {
  const rows = items.flatMap(({ instances, key, registrations }) =>
    instances.map((each): Row => ({ ...each, key, registrations })),
  );
  const columns = {
    app: ({ key }: Row) => key,
    instance: ({ index }: Row) => index,
    status: (each: Row) => state(each.status),
    since: ({ changedAt }: Row) => when(changedAt),
    registers: ({ registrations: { listeners, schedules, jobs } }: Row) =>
      [count(listeners, "listener"), count(schedules, "schedule"), count(jobs, "job")].join(", "),
    error: ({ error }: Row) => errorLine(error),
  };
  return table(rows, columns, { none: "No app has been set up.", least: ["since", "registers"] });
}

function appPage(app: AppDetails): (Part | string)[] {
  const failed = app.instances.flatMap(({ index, error }) => (error === null ? [] : [{ index, error }]));
  return [
    appTable([app]),
    ...failed.map(({ index, error }) => section(`error of instance ${index}`, errorLines(error))),
    ...app.registered.map(registrationPart),
    ...(app.registered.length === 0 ? ["It has registered nothing."] : []),
  ];
}

/** What it is about comes before how it is set. */
const first = new Set(["topic", "where", "cron", "every", "daily", "in", "once"]);

function registrationPart(one: RegistrationRecord): Part {
  const settings = Object.entries(one.settings)
    .filter(([key, value]) => value !== null && value !== false && !(key === "priority" && value === 0))
    .toSorted(([a], [b]) => Number(first.has(b)) - Number(first.has(a)))
    .map(([key, value]): [string, Cell] => [key, String(value)]);
  const facts = fields({
    ...Object.fromEntries(settings),
    handler: one.handler,
    location: copied(one.location),
    "first seen": when(one.firstRegisteredAt),
    "last seen": when(one.lastRegisteredAt),
    retired: when(one.retiredAt),
  });
  const source = one.source === null ? [] : [lines(one.source)];
  return section(`${one.kind} ${one.name} of instance ${one.instance}`, facts, ...source);
}
