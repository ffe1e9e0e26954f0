// The filter of jobs: what is typed, as the fields of the verbs.
import type { VerbInput } from "../../../client/verbs.ts";
import { ask } from "../../state/book.ts";
import { serverNow } from "../../state/clock.ts";
import { parseFilter, valueOf, valuesOf } from "../../state/filter.ts";
import type { FilterField } from "../../parts/filter-bar.tsx";

type Filter = VerbInput<"jobs.list">;
type Status = NonNullable<Filter["status"]>[number];
type Kind = NonNullable<Filter["kind"]>[number];

export const statuses: readonly Status[] = [
  "waiting",
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "skipped",
];
const kinds: readonly Kind[] = ["job", "schedule", "direct", "delivery", "catch_up", "call", "all"];

export const jobFields: readonly FilterField[] = [
  { name: "status", hint: "its state", values: statuses },
  {
    name: "queue",
    hint: "its queue",
    values: async () => (await ask("queues.list", {})).items.map(({ queue }) => queue),
  },
  { name: "name", hint: "what it does", values: jobNames },
  { name: "age", hint: "how old: >1h or <30m", values: ["<1h", "<24h", ">1h", ">24h", ">7d"] },
  { name: "tag", hint: "a tag of it" },
  { name: "key", hint: "its key" },
  {
    name: "schedule",
    hint: "what this schedule fired",
    values: async () => (await ask("schedules.list", {})).items.map(({ name }) => name),
  },
  {
    name: "template",
    hint: "made from this template",
    values: async () => (await ask("templates.list", {})).items.map(({ name }) => name),
  },
  { name: "group", hint: "a job of this group" },
  { name: "kind", hint: "what it is for", values: kinds },
  { name: "retried", hint: "whether it was tried again", values: ["yes", "no"] },
];

async function jobNames(): Promise<readonly string[]> {
  const { items } = await ask("runs.summary", {});
  return [...new Set(items.filter(({ kind }) => kind !== "listener").map(({ name }) => name))];
}

export function readJobFilter(text: string): Filter {
  const terms = parseFilter(text);
  const one = (name: string): string | undefined => valueOf(terms, name);
  const status = valuesOf(terms, "status").filter((each): each is Status => statuses.some((known) => known === each));
  const kind = valuesOf(terms, "kind").filter((each): each is Kind => kinds.some((known) => known === each));
  const retried = one("retried");
  return given({
    status: status.length === 0 ? undefined : status,
    kind: kind.length === 0 ? undefined : kind,
    queue: one("queue"),
    name: one("name") ?? one(""),
    key: one("key"),
    tag: one("tag"),
    group: one("group"),
    schedule: one("schedule"),
    template: one("template"),
    retried: retried === undefined ? undefined : retried !== "no",
    ...ages(valuesOf(terms, "age")),
  });
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `>1h`: made more than an hour ago. To the minute, so that the same filter stays the same question for a while. */
function ages(values: readonly string[]): { since?: number; until?: number } {
  const found: { since?: number; until?: number } = {};
  for (const value of values) {
    const [, sign = "<", many = "", unit = ""] = /^([<>]?)(\d+)([smhd])$/.exec(value) ?? [];
    if (many === "") continue;
    const at = Math.floor((serverNow() - Number(many) * (unitMs[unit] ?? 0)) / 60_000) * 60_000;
    if (sign === ">") found.until = at;
    else found.since = at;
  }
  return found;
}

function given<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]: Exclude<T[Name], undefined>;
  };
}
