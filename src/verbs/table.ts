// The table of verbs: a noun's verbs are loaded when a way in asks for them.
import type { Verb } from "./verb.ts";

/** `plain`: its verbs are called without the noun. `bare`: the verb that the noun alone stands for. */
type Noun = {
  readonly about: string;
  readonly more?: string;
  readonly plain?: true;
  readonly bare?: string;
  readonly load: () => Promise<{ readonly [name: string]: Verb }>;
};

/** In the order in which help shows them. */
export const nouns = {
  apps: {
    about: "list apps, show what they registered and where in the source, and remove them",
    more: "An app is a bundle of listeners and schedules with one or more configured instances (docs/apps.md).",
    load: async () => (await import("./sources/apps.ts")).apps,
  },
  jobs: {
    about: "look at jobs, make and run them, and change those that have not started",
    load: async () => (await import("./work/jobs.ts")).jobs,
  },
  groups: {
    about: "make, list, show, cancel and wait for groups: jobs that belong together",
    more: `A group is open until the last of its jobs has ended, and then completed, failed, partial or cancelled.`,
    load: async () => (await import("./work/groups.ts")).groups,
  },
  templates: {
    about: "list, show, create, edit, archive and restore templates, which jobs are made from",
    more: `A job is made from what a template says at that moment; neither an edit nor an archive changes one that
exists. "jobs enqueue --template" makes one.`,
    load: async () => (await import("./work/templates.ts")).templates,
  },
  definitions: {
    about: "list and show what can be made by its name: jobs with their settings and params, and events",
    more: `The book keeps the settings of every job that a program has hosted, and the JSON Schema of its params where the
schema's library offers one. Jobs serve every tenant, so each sees all of them, but for what apps of other
tenants register. Events are those that the process which answers declares.`,
    load: async () => (await import("./work/definitions.ts")).definitions,
  },
  schedules: {
    about: "list, make, change, preview and fire schedules, and say why one did or did not run",
    more: `Every slot, a moment at which a schedule is due, is decided once, and the decision is kept
(docs/schedules.md). Schedules fire while a program works on the book: daybook run, or one of yours.`,
    load: async () => (await import("./sources/schedules.ts")).schedules,
  },
  events: {
    about: "publish, list, follow, replay and clean up events",
    more: "An event is heard by every durable listener whose patterns match its topic (docs/events.md).",
    load: async () => (await import("./sources/events.ts")).events,
  },
  listeners: {
    about: "list, pause, set back and skip listeners",
    more: "A listener is known by its name, and collects also while nobody runs it (docs/events.md).",
    load: async () => (await import("./sources/listeners.ts")).listeners,
  },
  deadLetters: {
    about: "list, redrive and discard deliveries that failed for the last time",
    more: `A delivery that failed for the last time waits here until it is redriven or discarded; it keeps its event
and its job in the book (docs/events.md).`,
    load: async () => (await import("./sources/dead-letters.ts")).deadLetters,
  },
  calls: {
    about: "submit, list, show, cancel and resend HTTP calls",
    more: `Calls are sent while somebody works: a program that does, or daybook run (docs/calls.md). What they say and
what they are answered is sealed with the key in DAYBOOK_KEY, and shown by "calls reveal" alone.`,
    load: async () => (await import("./sources/calls.ts")).calls,
  },
  sinks: {
    about: "list, show, pause and resume what hands events to the outside",
    more: `A sink is a listener that hands events to the outside (docs/sinks.md). By the name "sink:<name>" it can be
set back, skipped and removed like any other, and what could not go out is a dead letter:

  $ daybook listeners rewind sink:warehouse --to beginning
  $ daybook dead-letters redrive --listener sink:warehouse --dry-run`,
    load: async () => (await import("./sources/listeners.ts")).sinks,
  },
  workers: {
    about: "run jobs from a program in any language: attach, claim, renew, settle",
    more: `A remote worker does not open the book. It attaches, claims jobs by name, and holds each by a lease, a
secret that must be renewed until the work is settled (docs/remote-workers.md).`,
    load: async () => (await import("./work/workers.ts")).workers,
  },
  queues: {
    about: "list queues and their lines, pause, resume, limit and normalise them",
    more: "A queue belongs to a tenant and exists once it was used or limited.",
    load: async () => (await import("./work/queues.ts")).queues,
  },
  reservations: {
    about: "list reservations: queues that are held for direct work",
    more: `Nothing of a queue that is held starts until its holder releases it or ends, or until ten minutes have
passed without a renewal.`,
    load: async () => (await import("./work/queues.ts")).reservations,
  },
  runs: {
    about: "list and show runs: what was executed and how it ended",
    more: `A run is one execution that has ended; it never changes. What runs now is "daybook jobs list
--status running".`,
    load: async () => (await import("./memory/runs.ts")).runs,
  },
  records: {
    about: "list, show, compare, follow, write, export and import records",
    more: `Every version of every record is kept (docs/records.md), so each of these can be asked about
the past as well.`,
    load: async () => (await import("./memory/records.ts")).records,
  },
  commits: {
    about: "list and show commits: what was changed in records, by whom and why",
    more: "Commits are numbered for each tenant, from 1 and without gaps.",
    load: async () => (await import("./memory/commits.ts")).commits,
  },
  sessions: {
    about: "list the processes that have the book open, and those that had, and show what one ran",
    more: 'Without a verb it is "sessions list".',
    bare: "list",
    load: async () => (await import("./memory/sessions.ts")).sessions,
  },
  book: {
    about: "look after the book",
    plain: true,
    load: async () => (await import("./book/book.ts")).book,
  },
  tokens: {
    about: "make, list and revoke tokens: who may use the book through a server",
    more: "The secret of a token is shown once, when it is made; the book keeps a hash of it (docs/access.md).",
    load: async () => (await import("./access/tokens.ts")).tokens,
  },
  audit: {
    about: "list what was changed through a server, by whom and from where",
    more: 'Without a verb it is "audit list".',
    bare: "list",
    load: async () => (await import("./access/audit.ts")).audit,
  },
  operations: {
    about: "list, show and cancel what takes long and was begun through a server",
    load: async () => (await import("./access/operations.ts")).operations,
  },
  backups: {
    about: "make and list backups in the book's own folder",
    load: async () => (await import("./book/backups.ts")).backups,
  },
  views: {
    about: "make or drop the read-only views under the names of other designs",
    more: `A book has none of them unless somebody asked: their names are common ones, such as jobs and events.
docs/origins.md lists them, with statements that read them.`,
    load: async () => (await import("./book/views.ts")).views,
  },
} satisfies { readonly [name: string]: Noun };

export type NounName = keyof typeof nouns;

export const nounNames = Object.keys(nouns) as readonly NounName[];

export function nounOf(name: NounName): Noun {
  return nouns[name];
}

/** Every verb by its noun and its name, for the compiler: clients and the schemas of answers are made from it. */
export type Table = { [Noun in keyof typeof nouns]: Awaited<ReturnType<(typeof nouns)[Noun]["load"]>> };

/** `jobs.cancel` and its verb, of one noun. */
export async function verbsOf(noun: NounName): Promise<[key: string, verb: Verb][]> {
  return Object.entries(await nounOf(noun).load()).map(([name, verb]) => [`${noun}.${name}`, verb]);
}

export async function everyVerb(): Promise<[key: string, verb: Verb][]> {
  return (await Promise.all(nounNames.map(verbsOf))).flat();
}
