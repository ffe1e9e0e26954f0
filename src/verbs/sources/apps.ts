// apps: what runs by name, where, and what each of them registered.
import type { AppDetails, AppInstance, AppProcess, AppRecord, RegistrationRecord } from "../../index.ts";
import { text } from "../field.ts";
import { applying } from "../shared-fields.ts";
import { errorLines } from "../work/job-view.ts";
import {
  asJson,
  copied,
  count,
  fields,
  lines,
  section,
  state,
  table,
  when,
  words,
  type Cell,
  type Part,
} from "../shown.ts";
import { operate, read } from "../verb.ts";

const key = text("the key of the app", "key");

export const apps = {
  list: read({
    words: "apps list",
    about: "list apps by key, with their instances and the processes that run them",
    more: `An instance has a line for each process that has it. When none has, it is stopped, and its line is of the last
one that had.`,
    run: async (book) => ({ items: await book.apps.list() }),
    show: ({ items }) => appTable(items),
  }),

  show: read({
    words: "apps show <key>",
    about: "show one app: its instances, and what they registered",
    input: { key },
    examples: ["apps show lights"],
    run: (book, input) => book.apps.get(input.key),
    show: appPage,
  }),

  remove: operate({
    words: "apps remove <key>",
    destroys: true,
    about: "end what an app registered that no program has any more",
    more: `It says what would end, and ends it with --apply. Its schedules decide nothing further, and what they fired and
nobody began is cancelled. What has run stays: its runs as long as others, and its registrations as retired ones. While a
process runs the app it is a conflict (exit code 5).`,
    input: { key, ...applying },
    examples: ["apps remove lights", "apps remove lights --apply"],
    run: (book, { key: wanted, apply = false }) => book.apps.remove(wanted, { dryRun: !apply }),
    show({ dryRun, key: app, listeners, schedules, jobs, kept }) {
      const what = [count(listeners, "listener"), count(schedules, "schedule"), count(jobs, "job")].join(", ");
      const stays = kept === 0 ? "" : `; of ${count(kept, "registration")} that ran the history stays`;
      return dryRun
        ? `${app} would be removed, with ${what}${stays}; remove it with --apply`
        : `${app} is removed, with ${what}${stays}`;
    },
  }),
};

type Row = AppProcess & Pick<AppInstance, "index" | "registrations"> & Pick<AppRecord, "key">;

function appTable(items: readonly AppRecord[]): Part {
  const rows = items.flatMap(({ instances, key: app }) =>
    instances.flatMap(({ index, processes, registrations }) =>
      processes.map((each): Row => ({ ...each, index, key: app, registrations })),
    ),
  );
  const columns = {
    app: ({ key: app }: Row) => copied(app),
    instance: ({ index }: Row) => index,
    status: (each: Row) => state(each.status),
    process: ({ host, pid }: Row) => (host === null ? null : copied(`${pid} on ${host}`)),
    since: ({ changedAt }: Row) => when(changedAt),
    registers: ({ registrations: { listeners, schedules, jobs } }: Row) =>
      [count(listeners, "listener"), count(schedules, "schedule"), count(jobs, "job")].join(", "),
    error: ({ error }: Row) => (error === null ? null : `${placed(error)}${error.type}: ${error.message}`),
  };
  return table(rows, columns, { none: "No app has been set up.", least: ["since", "registers", "process"] });
}

function placed({ at }: NonNullable<AppProcess["error"]>): string {
  return at === null ? "" : `${at}: `;
}

function appPage(app: AppDetails): (Part | string)[] {
  const failed = app.instances.flatMap(({ index, error }) => (error === null ? [] : [{ index, error }]));
  return [
    appTable([app]),
    ...failed.map(({ index, error }) =>
      section(
        `error of instance ${index}`,
        ...(error.at === null ? [] : [fields({ at: copied(error.at) })]),
        errorLines(error),
      ),
    ),
    ...app.registered.map(registrationPart),
    ...(app.registered.length === 0 ? ["It has registered nothing."] : []),
  ];
}

/** What it is about comes before how it is set. */
const first = new Set(["topic", "where", "cron", "every", "daily", "in", "once"]);

function registrationPart(one: RegistrationRecord): Part {
  const settings = Object.entries(one.settings)
    .filter(([name, value]) => value !== null && value !== false && !(name === "priority" && value === 0))
    .toSorted(([a], [b]) => Number(first.has(b)) - Number(first.has(a)))
    .map(([name, value]): [string, Cell] => [name, String(value)]);
  const { lastRun } = one;
  const facts = fields({
    ...Object.fromEntries(settings),
    handler: one.handler,
    location: copied(one.location),
    next: when(one.nextAt),
    "last run": lastRun === null ? null : words(state(lastRun.status), when(lastRun.endedAt), copied(lastRun.id)),
    "first seen": when(one.firstRegisteredAt),
    "last seen": when(one.lastRegisteredAt),
    retired: when(one.retiredAt),
  });
  const params = hasParams(one.params) ? [section("params", asJson(one.params))] : [];
  const source = one.source === null ? [] : [lines(one.source)];
  return section(`${one.kind} ${one.name} of instance ${one.instance}`, facts, ...params, ...source);
}

function hasParams(params: unknown): boolean {
  return params !== null && JSON.stringify(params) !== "{}";
}
