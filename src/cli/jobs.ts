// daybook jobs: look at the work of a book, and steer it.
import type { Command } from "commander";
import { cancelJob } from "./jobs/cancel.ts";
import { editJob } from "./jobs/edit.ts";
import { enqueueJob } from "./jobs/enqueue.ts";
import { explainJob } from "./jobs/explain.ts";
import { listJobs } from "./jobs/list.ts";
import { moveJob } from "./jobs/move.ts";
import { pauseName, resumeName } from "./jobs/pause.ts";
import { placeOfJob } from "./jobs/place.ts";
import { prioritiseJob } from "./jobs/prioritise.ts";
import { resultOfJob } from "./jobs/result.ts";
import { retryJob } from "./jobs/retry.ts";
import { runJobNow } from "./jobs/run-now.ts";
import { showJob } from "./jobs/show.ts";

const example = `
Example:
  $ daybook jobs list --book shop.db --status failed
  $ daybook jobs enqueue --book shop.db send-receipt --params '{"orderId": "o-17"}'`;

const commands: readonly ((jobs: Command) => void)[] = [
  ...[listJobs, showJob, explainJob, placeOfJob, resultOfJob],
  ...[enqueueJob, runJobNow, cancelJob, retryJob],
  ...[moveJob, prioritiseJob, editJob, pauseName, resumeName],
];

export function jobs(program: Command): void {
  const group = program
    .command("jobs")
    .description("look at jobs, make and run them, and change those that have not started")
    .helpCommand(false)
    .addHelpText("after", example);
  for (const add of commands) add(group);
}
