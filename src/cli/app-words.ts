// Apps in words: their instances, and what these registered.
import { isoTime } from "../core/time.ts";
import type { AppDetails, AppInstance, AppRecord, RegistrationRecord } from "../apps/read-apps.ts";
import { errorLine, isoOrNull } from "./job-words.ts";
import { plainCell, plainLines, showTable, showTime, timeCell } from "./show.ts";

export function appJson(app: AppRecord): Record<string, unknown> {
  return { ...app, instances: app.instances.map((each) => ({ ...each, changedAt: isoTime(each.changedAt) })) };
}

export function detailsJson({ registered, ...app }: AppDetails): Record<string, unknown> {
  const rows = registered.map((each) => ({
    ...each,
    firstRegisteredAt: isoTime(each.firstRegisteredAt),
    lastRegisteredAt: isoTime(each.lastRegisteredAt),
    retiredAt: isoOrNull(each.retiredAt),
  }));
  return { ...appJson(app), registered: rows };
}

/** Why one failed stands below the table, where there is room for it. */
export async function appTable(apps: readonly AppRecord[]): Promise<string> {
  const rows = apps.flatMap(({ key, instances, registrations: { listeners, schedules, jobs } }) =>
    instances.map(({ index, status, changedAt }, place) => [
      ...[place === 0 ? key : "", String(index), status, timeCell(changedAt)],
      place === 0 ? `${listeners} listeners\n${schedules} schedules\n${jobs} jobs` : "",
    ]),
  );
  const table = await showTable(["app", "instance", "status", "since", "registers"], rows);
  return [table, ...apps.flatMap(({ key, instances }) => instances.flatMap((each) => failure(key, each)))].join("\n");
}

function failure(key: string, { index, error }: AppInstance): string[] {
  return error === null ? [] : [`${key}, instance ${index}: ${errorLine(error, 500)}`];
}

export async function detailsWords(app: AppDetails): Promise<string> {
  const { registered } = app;
  const parts = [await appTable([app])];
  for (const each of registered) parts.push(registrationWords(each));
  if (registered.length === 0) parts.push("It has registered nothing.");
  return parts.join("\n\n");
}

/** What it is about comes before how it is set. */
const first = new Set(["topic", "where", "cron", "every", "daily", "in", "once"]);

function registrationWords(one: RegistrationRecord): string {
  const settings = Object.entries(one.settings)
    .filter(([key, value]) => value !== null && value !== false && !(key === "priority" && value === 0))
    .toSorted(([a], [b]) => Number(first.has(b)) - Number(first.has(a)))
    .map(([key, value]) => `${key} ${plainCell(String(value), 120)}`);
  const retired = one.retiredAt === null ? "" : `, retired ${showTime(one.retiredAt).ago}`;
  const since = `first seen ${showTime(one.firstRegisteredAt).ago}, last ${showTime(one.lastRegisteredAt).ago}${retired}`;
  const source = one.source === null ? [] : plainLines(one.source).split("\n");
  return [
    `${one.kind} ${plainCell(one.name, 200)} of instance ${one.instance}`,
    `  ${settings.join(", ")}`,
    `  ${plainCell(one.handler, 200)} at ${plainCell(one.location, 500)}, ${since}`,
    ...source.map((line) => `  | ${line}`),
  ].join("\n");
}
