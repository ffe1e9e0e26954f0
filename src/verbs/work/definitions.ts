// definitions: what can be made by its name, for forms and for people who did not write the program.
import type { DefinitionRecord } from "../../index.ts";
import { maybe, text, word } from "../field.ts";
import { paged } from "../list.ts";
import { ownerOf } from "../memory/tally.ts";
import { asJson, copied, fields, section, when } from "../shown.ts";
import { read } from "../verb.ts";

export const definitions = {
  list: paged({
    words: "definitions list",
    about: "list the jobs that the book knows, by name, then the events that this process declares",
    input: { kind: maybe(word("only jobs, or only events", ["job", "event"])) },
    examples: ["definitions list --kind job"],
    find: (book, filter) => book.definitions.list(filter),
    columns: {
      name: ({ name }) => copied(name),
      kind: ({ kind }) => kind,
      queue: ({ settings }) => settings?.queue ?? null,
      attempts: ({ settings }) => settings?.attempts ?? null,
      app: ({ app }) => ownerOf(app),
      schema: ({ hasSchema }) => (hasSchema ? "yes" : null),
      hosted: hostedCell,
      updated: ({ updatedAt }) => when(updatedAt),
    },
    none: "No program has hosted a job in this book yet.",
    least: ["updated", "app", "attempts"],
  }),

  show: read({
    words: "definitions show <name>",
    about: "show the settings of a job and what it takes, or what an event says",
    more: "The schema is JSON Schema, of the params or of the payload.",
    input: { name: text("the name of a job, or the topic of an event", "name") },
    examples: ["definitions show send-receipt"],
    run: (book, { name }) => book.definitions.get(name),
    show: ({ schema, ...found }) => [
      fields({
        name: copied(found.name),
        kind: found.kind,
        hosted: hostedCell(found),
        app: ownerOf(found.app),
        "first hosted": when(found.hostedAt),
        updated: when(found.updatedAt),
        "last seen": when(found.lastSeenAt),
      }),
      ...(found.settings === null ? [] : [section("settings", asJson(found.settings))]),
      ...(schema === null ? [] : [section(found.kind === "job" ? "params" : "payload", asJson(schema))]),
    ],
  }),
};

function hostedCell({ kind, hosted, sessionIds }: DefinitionRecord): string | null {
  if (kind === "event") return null;
  if (!hosted) return "by nobody";
  return sessionIds === null || sessionIds.length === 1 ? "yes" : `by ${sessionIds.length} processes`;
}
