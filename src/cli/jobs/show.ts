// daybook jobs show: everything the book knows about one job.
import type { Command } from "commander";
import type { Book } from "../../book.ts";
import type { JobRecord } from "../../jobs/list.ts";
import type { RunLog } from "../../telemetry/run.ts";
import type { Answer } from "../answer.ts";
import { commandWords } from "../command-words.ts";
import { jobJson, jobTable, progressOf, showStatus } from "../job-words.ts";
import { logJson, logLines, showError } from "../run-words.ts";
import { plainCell, showFields, showJson, showTime } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
The chain is the job with all its retries, the first one first; a retry is a new job.

Example:
  $ daybook jobs show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function showJob(jobs: Command): void {
  jobs
    .command("show")
    .description("show one job: its params, its run with error, logs and program, its progress, its chain, its cause")
    .argument("<id>", "the id of the job")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => toAnswer(await lookUp(book, id))),
    );
}

type Seen = { readonly job: JobRecord; readonly chain: readonly JobRecord[]; readonly logs: readonly RunLog[] };

async function lookUp(book: Book, id: string): Promise<Seen> {
  const job = await book.jobs.get(id);
  const chain = await book.jobs.chain(id);
  return { job, chain, logs: job.runId === null ? [] : await book.runs.logs(job.runId) };
}

function toAnswer({ job, chain, logs }: Seen): Answer {
  return {
    json: { ...jobJson(job), chain: chain.map(jobJson), logs: logs.map(logJson) },
    text: () => inWords({ job, chain, logs }),
  };
}

async function inWords({ job, chain, logs }: Seen): Promise<string> {
  const { run } = job;
  const parts = [
    await showFields(fieldsOf(job)),
    `params\n${showJson(job.params)}`,
    ...(run?.result == null ? [] : [`result\n${showJson(run.result)}`]),
    ...(run?.command == null ? [] : [`program\n${await commandWords(run.command)}`]),
    ...(run?.error == null ? [] : [`error\n${showError(run.error)}`]),
    ...(chain.length === 1 ? [] : [`chain\n${await jobTable(chain)}`]),
    ...(logs.length === 0 ? [] : [`logs\n${logLines(logs)}`]),
  ];
  return parts.join("\n\n");
}

function fieldsOf(job: JobRecord): (readonly [string, string])[] {
  const { run, cause } = job;
  const fields: readonly (readonly [string, string | null])[] = [
    ["job", job.id],
    ["name", plainCell(job.name, 200)],
    ["queue", `${plainCell(job.queue, 200)}, priority ${job.priority}, position ${job.position}`],
    ["status", `${showStatus(job.status)}${job.waitsFor === null ? "" : `, waits for its ${job.waitsFor}`}`],
    ["attempt", `${job.attempt} of ${job.attempts}${job.losses === 0 ? "" : `, ${job.losses} losses`}`],
    ["origin", job.origin],
    ["template", job.template === null ? null : plainCell(job.template, 200)],
    ["key", job.key === null ? null : plainCell(job.key, 512)],
    ["tags", job.tags.length === 0 ? null : job.tags.map((tag) => plainCell(tag)).join(", ")],
    ["created", moment(job.createdAt)],
    ["due", job.availableAt === job.createdAt ? null : moment(job.availableAt)],
    ["started", moment(job.startedAt)],
    ["finished", moment(job.finishedAt)],
    ["progress", job.progress === null ? null : progressOf(job.progress)],
    ["session", job.sessionId],
    ["run", run === null ? job.runId : `${run.id}: ${showStatus(run.status)} in ${Math.round(run.durationMs)} ms`],
    ["caused by", cause === null ? null : `run ${cause.runId}`],
    ["root cause", cause === null ? null : `run ${cause.rootRunId}`],
    ["retry of", job.retryOf],
    ["retried by", job.retriedBy],
  ];
  return fields.filter((field): field is readonly [string, string] => field[1] !== null);
}

function moment(ms: number | null): string | null {
  const { ago, exact } = showTime(ms);
  return ms === null ? null : `${exact} (${ago})`;
}
