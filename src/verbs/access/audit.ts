// audit: what was changed through a server, by whom and from where.
import { limits } from "../../core/limits.ts";
import { maybe, moment, text } from "../field.ts";
import { paged } from "../list.ts";
import { copied, state, when, words } from "../shown.ts";
import { forAdmins } from "../verb.ts";

export const audit = {
  list: forAdmins(
    paged({
      words: "audit list",
      about: "list what was changed through a server: who, what, when, from where, and how it ended, the newest first",
      more: `An admin of a tenant sees what was done to the tenant; one of the book sees all. What was given is kept without
its secrets, and cut; --json shows it. A change whose process ended before it was answered has no outcome.
It is kept for 90 days, or as the "audit" of the book's retention says.`,
      input: {
        token: maybe(text("only what the token of this id did", "id", limits.nameBytesMax)),
        verb: maybe(text("only this verb, such as jobs.cancel", "verb", limits.nameBytesMax)),
        subject: maybe(text("only what was done to the thing of this id or name", "id", limits.nameBytesMax)),
        since: maybe(moment("only what was done from then on: an ISO time, or how long ago, such as 24h")),
      },
      examples: ["audit list --since 24h", "audit list --token k3v9w2m8pq --verb jobs.cancel"],
      find: (book, filter) => book.audit.list(filter),
      columns: {
        at: (each) => when(each.at),
        by: ({ by }) => words(by.name, `(${by.role})`),
        tenant: (each) => each.tenant,
        verb: (each) => each.verb,
        subject: (each) => copied(each.subject),
        from: (each) => each.from,
        outcome: ({ outcome }) => (outcome === null ? null : state(outcome.code ?? String(outcome.status))),
      },
      none: "Nothing was changed through a server, or nothing that fits.",
      least: ["from", "tenant", "outcome"],
    }),
  ),
};
