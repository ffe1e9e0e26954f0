// The table of verbs: a noun's verbs are loaded when somebody asks for them.
import type { Verb } from "./verb.ts";

/** `plain`: its verbs are called without the noun. `bare`: the verb that the noun alone stands for. */
type Noun = {
  readonly about: string;
  readonly more?: string;
  readonly plain?: true;
  readonly bare?: string;
  readonly load: () => Promise<{ readonly [name: string]: Verb }>;
};

export const nouns = {
  jobs: {
    about: "look at jobs, make and run them, and change those that have not started",
    load: async () => (await import("./jobs.ts")).jobs,
  },
  events: {
    about: "publish, list, follow, replay and clean up events",
    more: "An event is heard by every durable listener whose patterns match its topic (docs/events.md).",
    load: async () => (await import("./events.ts")).events,
  },
  groups: {
    about: "make, list, show, cancel and wait for groups: jobs that belong together",
    more: `A group is open until the last of its jobs has ended, and then completed, failed, partial or cancelled.`,
    load: async () => (await import("./groups.ts")).groups,
  },
  templates: {
    about: "list, show, create, edit, archive and restore templates, which jobs are made from",
    more: `A job is made from what a template says at that moment; neither an edit nor an archive changes one that
exists. "jobs enqueue --template" makes one.`,
    load: async () => (await import("./templates.ts")).templates,
  },
  schedules: {
    about: "list, make, change, preview and fire schedules, and say why one did or did not run",
    more: `Every slot, a moment at which a schedule is due, is decided once, and the decision is kept
(docs/schedules.md). Schedules fire while a program works on the book: daybook run, or one of yours.`,
    load: async () => (await import("./schedules.ts")).schedules,
  },
  queues: {
    about: "list queues and their lines, pause, resume, limit and normalise them",
    more: "A queue belongs to a tenant and exists once it was used or limited.",
    load: async () => (await import("./queues.ts")).queues,
  },
  reservations: {
    about: "list reservations: queues that are held for direct work",
    more: `Nothing of a queue that is held starts until its holder releases it or ends, or until ten minutes have
passed without a renewal.`,
    load: async () => (await import("./reservations.ts")).reservations,
  },
  book: {
    about: "look after the book",
    plain: true,
    load: async () => (await import("./book.ts")).book,
  },
} satisfies { readonly [name: string]: Noun };

export type NounName = keyof typeof nouns;

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
  const names = Object.keys(nouns) as NounName[];
  return (await Promise.all(names.map(verbsOf))).flat();
}
