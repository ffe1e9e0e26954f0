// daybook runs: what was executed and how it ended.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { RunFilter, RunPage } from "../telemetry/runs.ts";
import type { RunLog, RunRecord, RunStatus } from "../telemetry/run.ts";
import type { Answer } from "./answer.ts";
import { errorLine, showStatus } from "./job-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { logJson, logLines, runJson, showError } from "./run-words.ts";
import { plainCell, showFields, showJson, showTable, showTime, timeCell } from "./show.ts";
import { overview } from "./runs/overview.ts";
import { pin } from "./runs/pin.ts";
import { slow } from "./runs/slow.ts";
import { summary } from "./runs/summary.ts";
import { addTimeOptions } from "./scope-options.ts";
import { wholeNumber } from "./whole-number.ts";
import { looking, withBook } from "./with-book.ts";

const groupExample = `
A run is one execution that has ended; it never changes. What runs now is "daybook jobs list
--status running".

Example:
  $ daybook runs list --book shop.db --status error
  $ daybook runs show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

const listExample = `
Example:
  $ daybook runs list --book shop.db --name send-receipt --status timed_out
  $ daybook runs list --book home.db --app kitchen --since 1h`;

const showExample = `
Example:
  $ daybook runs show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

type Options = Omit<RunFilter, "status"> & PageOptions & { readonly status?: string };

export function runs(program: Command): void {
  const group = program
    .command("runs")
    .description("list and show runs: what was executed and how it ended")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  const list = group
    .command("list")
    .description("list ended runs, newest first")
    .option("--status <status>", "only runs that ended so: success, error, cancelled, timed_out, skipped or lost")
    .option("--name <name>", "only runs of the job or listener of this name")
    .option("--registration <name>", "only runs of the listener or schedule of this name")
    .option("--kind <kind>", "only of this kind: job, listener (live), delivery, schedule, direct or call")
    .option("--app <key>", "only of this app")
    .option("--instance <n>", "only of this instance of it", wholeNumber("--instance"))
    .option("--session <id>", "only what this session ran");
  addTimeOptions(list);
  addPageOptions(list)
    .addHelpText("after", listExample)
    .action(({ status, ...rest }: Options) =>
      withBook(list, looking, async (book) => {
        const wanted = status === undefined ? {} : { status: await checkStatus(status) };
        return listAnswer(list, await book.runs.list({ ...rest, ...wanted }));
      }),
    );
  group
    .command("show")
    .description("show one run: its result or error, and its logs")
    .argument("<id>", "the id of the run")
    .addHelpText("after", showExample)
    .action((id: string, _options: unknown, command: Command) => withBook(command, looking, (book) => show(book, id)));
  for (const add of more) add(group);
}

/** The commands of the group, in the order in which help shows them. */
const more: readonly ((runs: Command) => void)[] = [summary, overview, slow, pin];

async function checkStatus(text: string): Promise<RunStatus> {
  const { runStatuses } = await import("../telemetry/run.ts");
  const found = runStatuses.find((each) => each === text);
  if (found === undefined) throw invalid(`status ${quote(text)} is not known: ${runStatuses.join(", ")}`);
  return found;
}

function listAnswer(command: Command, { items, next }: RunPage): Answer {
  return {
    json: { items: items.map(runJson), next },
    text: async () => {
      if (items.length === 0) return "There are no such runs, or none before that cursor.";
      return [await table(items), ...nextPage(command, next)].join("\n");
    },
  };
}

function table(items: readonly RunRecord[]): Promise<string> {
  return showTable(
    ["id", "name", "status", "try", "started", "took", "error"],
    items.map((run) => [
      run.id,
      plainCell(run.name, 32),
      showStatus(run.status),
      String(run.attempt),
      timeCell(run.startedAt),
      `${Math.round(run.durationMs)} ms`,
      errorLine(run.error, 40),
    ]),
  );
}

async function show(book: Book, id: string): Promise<Answer> {
  const run = await book.runs.get(id);
  const logs = await book.runs.logs(id);
  return { json: { ...runJson(run), logs: logs.map(logJson) }, text: () => inWords(run, logs) };
}

async function inWords(run: RunRecord, logs: readonly RunLog[]): Promise<string> {
  const started = showTime(run.startedAt);
  const fields: readonly (readonly [string, string | null])[] = [
    ["run", run.id],
    ["kind", run.kind],
    ["name", plainCell(run.name, 200)],
    ["status", showStatus(run.status)],
    ["attempt", String(run.attempt)],
    ["job", run.jobId],
    [
      "heard",
      run.event === null ? null : `${run.event.topic}${run.event.id === null ? "" : ` (event ${run.event.id})`}`,
    ],
    ["app", run.app === null ? null : plainCell(`${run.app.key}[${run.app.instance}]`, 200)],
    ["registration", run.registration === null ? null : plainCell(run.registration, 200)],
    ["session", run.sessionId],
    ["started", `${started.exact} (${started.ago})`],
    ["took", `${Math.round(run.durationMs)} ms`],
    ["caused by", run.cause === null ? null : `run ${run.cause.runId}`],
    ["root cause", run.cause?.rootRunId == null ? null : `run ${run.cause.rootRunId}`],
  ];
  const parts = [
    await showFields(fields.filter((field): field is readonly [string, string] => field[1] !== null)),
    ...(run.result === null ? [] : [`result\n${showJson(run.result)}`]),
    ...(run.error === null ? [] : [`error\n${showError(run.error)}`]),
    ...(logs.length === 0 ? [] : [`logs\n${logLines(logs)}`]),
  ];
  return parts.join("\n\n");
}
