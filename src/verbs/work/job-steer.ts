// jobs cancel, retry, move, prioritise, edit, pause and resume: work that was made, and is changed.
import type { Enqueued, MoveTo } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { flag, id, json, maybe, text } from "../field.ts";
import { exampleId, noted, priority } from "../shared-fields.ts";
import { operate } from "../verb.ts";

const other = "019a3c5e-7a04-7000-8000-91d2c40ee3a7";

export const steer = {
  cancel: operate({
    words: "jobs cancel <id>",
    http: "POST /jobs/{id}/cancel",
    about: "cancel a job: one that waits never runs, one that runs is asked to end",
    more: `A running job gets the signal and ends by itself; "jobs show" says when it has. A job that has ended is
a conflict (exit code 5).`,
    input: { id: id("job") },
    examples: [`jobs cancel ${exampleId}`],
    run: (book, input) => book.jobs.cancel(input.id),
    show: (done) => (done.status === "cancelled" ? `${done.id} is cancelled` : `${done.id} runs and was asked to end`),
  }),

  retry: operate({
    words: "jobs retry <id>",
    http: "POST /jobs/{id}/retry",
    about: "try a failed or cancelled job again, also beyond its attempts",
    more: `A retry is a new job that continues the last one of the chain. A chain that is still open, or that
has completed, is a conflict (exit code 5).`,
    input: { id: text("the id of any job of the chain", "id") },
    examples: [`jobs retry ${exampleId}`],
    async run(book, input): Promise<Enqueued> {
      const { id: retry, name, status, created } = await book.jobs.retry(input.id);
      return { id: retry, name, status, created };
    },
    show: (made) => `${made.id} tries again, ${made.status}`,
  }),

  move: operate({
    words: "jobs move <id>",
    http: "POST /jobs/{id}/move",
    about: "give a job that has not started another place in its queue",
    more: `A job moves within its queue and priority; "jobs prioritise" gives it another priority. One that runs or
has ended is a conflict (exit code 5).`,
    input: {
      id: id("job"),
      before: maybe(text("right before this job", "id")),
      after: maybe(text("right after this job", "id")),
      first: maybe(flag("before all others of its priority")),
      last: maybe(flag("behind all others of its priority")),
    },
    examples: [`jobs move ${exampleId} --first`, `jobs move ${exampleId} --before ${other}`],
    check: (input) => void toPlace(input),
    run: (book, { id: job, ...to }) => book.jobs.move(job, toPlace(to)),
    show: (job) => `${job.id} has position ${job.position} in priority ${job.priority}`,
  }),

  prioritise: operate({
    words: "jobs prioritise <id> <priority>",
    http: "POST /jobs/{id}/prioritise",
    about: "give a job that has not started another priority",
    more: "The job goes behind those that have its new priority. One that runs or has ended is a conflict (exit\ncode 5).",
    input: { id: id("job"), priority: priority("higher runs first") },
    examples: [`jobs prioritise ${exampleId} 10`],
    run: (book, input) => book.jobs.prioritise(input.id, input.priority),
    show: (job) => `${job.id} has priority ${job.priority}`,
  }),

  edit: operate({
    words: "jobs edit <id>",
    http: "PUT /jobs/{id}/params",
    definitions: "may",
    about: "replace the params of a job that has not started",
    more: `The params are replaced as a whole; the job keeps its place. Where a file here declares the job, they are
checked by its definition, and limits that depend on them follow; else they are checked when the job
runs. One that runs or has ended, and a retry, is a conflict (exit code 5).`,
    input: { id: id("job"), params: json("the params as JSON") },
    examples: [
      `jobs edit ${exampleId} --params '{"orderId": "o-18"}'`,
      `jobs edit ${exampleId} --params @order.json --from jobs.ts`,
    ],
    run: (book, { id: job, params }) => book.jobs.edit(job, params),
    show: ({ id: job, status }) => `${job} has new params: ${status}`,
  }),

  pause: operate({
    words: "jobs pause <name>",
    http: "POST /job-names/{name}/pause",
    about: "start no more jobs of a name until it is resumed",
    more: 'What runs goes on. To hold back a whole queue, see "queues pause".',
    input: { name: text("the name of the jobs", "name"), ...noted },
    examples: ['jobs pause send-receipt --note "the mail server is down"'],
    async run(book, { name, note }) {
      await book.jobs.pause(name, note);
      return { name, paused: true, note: note ?? null };
    },
    show: ({ name }) => `${name} is paused`,
  }),

  resume: operate({
    words: "jobs resume <name>",
    http: "POST /job-names/{name}/resume",
    about: "let jobs of a name start again",
    input: { name: text("the name of the jobs", "name") },
    examples: ["jobs resume send-receipt"],
    async run(book, { name }) {
      await book.jobs.resume(name);
      return { name, paused: false };
    },
    show: ({ name }) => `${name} is not paused`,
  }),
};

type Places = { readonly before?: string; readonly after?: string; readonly first?: boolean; readonly last?: boolean };

function toPlace({ before, after, first, last }: Places): MoveTo {
  const given: readonly MoveTo[] = [
    ...(before === undefined ? [] : [{ before }]),
    ...(after === undefined ? [] : [{ after }]),
    ...(first === true ? ["first" as const] : []),
    ...(last === true ? ["last" as const] : []),
  ];
  const [to] = given;
  if (to !== undefined && given.length === 1) return to;
  throw invalid(`${given.length === 0 ? "no place" : "more than one place"} given: give before, after, first or last`);
}
