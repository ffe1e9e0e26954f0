// runs pin and unpin: whether retention may remove a run.
import { limits } from "../../core/limits.ts";
import { id, maybe, text } from "../field.ts";
import { verb } from "../verb.ts";

const example = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

export const pin = {
  pin: verb({
    words: "runs pin <id>",
    http: "PUT /runs/{id}/pin",
    role: "operate",
    about: "keep a run from being removed",
    more: 'A pinned run stays, with its log lines and its job, whatever "daybook retain" and "daybook prune" are told.',
    input: { id: id("run"), note: maybe(text("why", "text", limits.noteBytesMax)) },
    examples: [`runs pin ${example} --note "the night it stayed dark"`],
    async run(book, { id: wanted, note }) {
      await book.runs.pin(wanted, note === undefined ? {} : { note });
      return { id: wanted, pinned: true };
    },
    show: ({ id: run }) => `run ${run} is pinned`,
  }),

  unpin: verb({
    words: "runs unpin <id>",
    http: "DELETE /runs/{id}/pin",
    role: "operate",
    about: "let a pinned run leave in its time",
    input: { id: id("run") },
    examples: [`runs unpin ${example}`],
    run: async (book, { id: wanted }) => ({
      id: wanted,
      pinned: false,
      wasPinned: await book.runs.unpin(wanted),
    }),
    show: ({ id: run, wasPinned }) => (wasPinned ? `run ${run} is no longer pinned` : `run ${run} was not pinned`),
  }),
};
