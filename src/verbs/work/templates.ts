// templates: jobs with default params and settings, kept under a name.
import type { Backoff, TemplateRecord } from "../../index.ts";
import { formatDuration } from "../../core/duration.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { parseJson } from "../../core/parse-json.ts";
import { checkBackoff } from "../../core/retry.ts";
import { paged } from "../list.ts";
import { choice, duration, field, json, maybe, orNone, text, whole, type Field } from "../field.ts";
import { notice, priority } from "../shared-fields.ts";
import { asJson, copied, fields, section, when, type Part } from "../shown.ts";
import { operate, read } from "../verb.ts";
import { jobEnds } from "../../jobs/notice.ts";
import { noticeOf } from "./job-view.ts";

const name = text("the name of the template", "name");
const job = text("the name of the job that is made from it", "name");
const params = maybe(json("default params as JSON"));

const queue = text("the queue", "queue");
const rank = priority("higher runs first");
const attempts = whole("how often a job may be tried in total", 1, 1000);
const waits = backoff("the waits before each retry, such as 10s,1m,10m, or an object as JSON");
const timeout = duration("how long one run may take", { min: 1 });
const notify = notice(jobEnds, "the template");
const losses = whole("how often its process may be lost while it runs alone", 0, 1000);

export const templates = {
  list: paged({
    words: "templates list",
    about: "list templates, newest first",
    input: { archived: maybe(choice("only those that are archived", "only those that are not")) },
    examples: ["templates list --no-archived"],
    find: (book, filter) => book.templates.list(filter),
    columns: {
      name: (each) => copied(each.name),
      job: (each) => each.job,
      queue: (each) => each.queue,
      updated: (each) => when(each.updatedAt),
      archived: (each) => when(each.archivedAt),
      params: (each) => JSON.stringify(each.params),
    },
    none: "There are no such templates, or none before that cursor.",
    least: ["params", "queue", "updated"],
  }),

  show: read({
    words: "templates show <name>",
    about: "show one template: its job, its default params and its settings",
    more: "The definition of the job decides what is not shown.",
    input: { name },
    examples: ["templates show reminder"],
    run: (book, input) => book.templates.get(input.name),
    show: templatePage,
  }),

  create: operate({
    words: "templates create <name>",
    http: "POST /templates",
    about: "keep a job with default params and settings under a name",
    more: `The definition of the job decides what is not given. A name that is taken, also by an archived template, is
a conflict (exit code 5).`,
    input: {
      name,
      job,
      params,
      queue: maybe(queue),
      priority: maybe(rank),
      attempts: maybe(attempts),
      backoff: maybe(waits),
      timeout: maybe(timeout),
      losses: maybe(losses),
      notify: maybe(notify),
    },
    examples: [`templates create reminder --job send-receipt --params '{"copies": 2}' --attempts 8`],
    run: (book, { name: called, ...options }) => book.templates.create(called, withParams(options)),
    show: templatePage,
  }),

  edit: operate({
    words: "templates edit <name>",
    http: "PUT /templates/{name}",
    about: "change a template; jobs that exist stay as they are",
    more: `What is not given stays, "none" gives a setting back to the definition, and --params replaces all the
defaults there were.`,
    input: {
      name,
      job: maybe(job),
      params,
      queue: maybe(orNone(queue)),
      priority: maybe(orNone(rank)),
      attempts: maybe(orNone(attempts)),
      backoff: maybe(orNone(waits)),
      timeout: maybe(orNone(timeout)),
      losses: maybe(orNone(losses)),
      notify: maybe(orNone(notify)),
    },
    examples: [`templates edit reminder --params '{"copies": 1}' --priority none`],
    run: (book, { name: called, ...changes }) => book.templates.edit(called, withParams(changes)),
    show: templatePage,
  }),

  archive: operate({
    words: "templates archive <name>",
    about: "make no more jobs from a template; those that exist stay",
    input: { name },
    examples: ["templates archive reminder"],
    run: (book, input) => book.templates.archive(input.name),
    show: templatePage,
  }),

  restore: operate({
    words: "templates restore <name>",
    about: "let jobs be made from an archived template again",
    input: { name },
    examples: ["templates restore reminder"],
    run: (book, input) => book.templates.restore(input.name),
    show: templatePage,
  }),
};

/** The library refuses what cannot be the defaults of a template. */
function withParams<Given extends { readonly params?: unknown }>(given: Given): Given & { readonly params?: object } {
  return given as Given & { readonly params?: object };
}

function templatePage(template: TemplateRecord): Part[] {
  const facts = fields({
    template: template.name,
    job: template.job,
    queue: template.queue,
    priority: template.priority,
    attempts: template.attempts,
    backoff: template.backoff === null ? null : JSON.stringify(template.backoff),
    timeout: template.timeoutMs === null ? null : formatDuration(template.timeoutMs),
    losses: template.losses,
    notifies: noticeOf(template.notify),
    revision: template.revision,
    created: when(template.createdAt),
    updated: when(template.updatedAt),
    archived: when(template.archivedAt),
  });
  return [facts, section("params", asJson(template.params))];
}

/** How long retries wait: on a command line `10s,1m,10m`, or a formula as JSON. */
export function backoff(about: string): Field<Backoff, false> {
  const formula = {
    type: "object",
    properties: {
      base: duration("").schema,
      factor: { type: "number", minimum: 1, maximum: 100 },
      max: duration("").schema,
      spread: { type: "number", minimum: 0, maximum: 1 },
    },
    additionalProperties: false,
  };
  const list = { type: "array", items: duration("").schema, minItems: 1, maxItems: limits.backoffStepsMax };
  return field({
    kind: "text",
    about,
    metavar: "list",
    schema: { anyOf: [list, formula] },
    check(value, what) {
      // Only what is plain JSON: a Map has no properties, and would pass for a formula of defaults.
      toJson(value, { what });
      checkBackoff(value as Backoff);
    },
    fromText: (given, what) =>
      given.startsWith("{") ? parseJson(given, { what }) : given.split(",").map((each) => each.trim()),
  });
}
