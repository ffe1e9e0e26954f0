// The table of verbs: a noun's verbs are loaded when somebody asks for them.
import type { Verb } from "./verb.ts";

export const nouns = {
  jobs: {
    about: "look at jobs, make and run them, and change those that have not started",
    more: "",
    load: async () => (await import("./jobs.ts")).jobs,
  },
  queues: {
    about: "list queues and their lines, pause, resume, limit and normalise them",
    more: "A queue belongs to a tenant and exists once it was used or limited.",
    load: async () => (await import("./queues.ts")).queues,
  },
};

/** Every verb by its noun and its name, for the compiler: clients and the schemas of answers are made from it. */
export type Table = { [Noun in keyof typeof nouns]: Awaited<ReturnType<(typeof nouns)[Noun]["load"]>> };

/** `jobs.cancel` and its verb, of all nouns or of one. */
export async function verbsOf(noun: keyof typeof nouns): Promise<[key: string, verb: Verb][]> {
  return Object.entries<Verb>(await nouns[noun].load()).map(([name, verb]) => [`${noun}.${name}`, verb]);
}

export async function everyVerb(): Promise<[key: string, verb: Verb][]> {
  const names = Object.keys(nouns) as (keyof typeof nouns)[];
  return (await Promise.all(names.map(verbsOf))).flat();
}
