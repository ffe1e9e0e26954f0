// daybook jobs place: where a job stands in line, and when its turn may come.
import type { Command } from "commander";
import type { Book } from "../../book.ts";
import type { Answer } from "../answer.ts";
import { isoOrNull } from "../job-words.ts";
import { showTime } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
The time is an estimate: the mean of the queue's last runs, over how many run there now. A job that
waits for something, runs or has ended stands in no line; "daybook jobs explain" says more.

Example:
  $ daybook jobs place --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function placeOfJob(jobs: Command): void {
  jobs
    .command("place")
    .description("say where a job stands in line, and when it may start")
    .argument("<id>", "the id of the job")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, (book) => toAnswer(book, id)),
    );
}

async function toAnswer(book: Book, id: string): Promise<Answer> {
  const found = await book.jobs.place(id);
  if (found === null) {
    const { status, waitsFor } = await book.jobs.get(id);
    const waits = waitsFor === null ? "" : ` for its ${waitsFor}`;
    return {
      json: { id, status, place: null, of: null, startsAt: null },
      text: () => `${id} is ${status}${waits} and stands in no line`,
    };
  }
  const { place, of, startsAt } = found;
  return {
    json: { id, status: "queued", place, of, startsAt: isoOrNull(startsAt) },
    text() {
      const { ago, exact } = showTime(startsAt);
      const when = startsAt === null ? "nobody can say when it starts" : `it may start ${ago} (${exact})`;
      return `${place} of ${of} in line: ${when}`;
    },
  };
}
