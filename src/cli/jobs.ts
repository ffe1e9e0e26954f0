// daybook jobs: look at the work of a book, and steer it.
import type { Command } from "commander";
import { cancelJob } from "./jobs/cancel.ts";
import { enqueueJob } from "./jobs/enqueue.ts";
import { explainJob } from "./jobs/explain.ts";
import { listJobs } from "./jobs/list.ts";
import { pauseName, resumeName } from "./jobs/pause.ts";
import { retryJob } from "./jobs/retry.ts";
import { showJob } from "./jobs/show.ts";

const example = `
Example:
  $ daybook jobs list --book shop.db --status failed
  $ daybook jobs enqueue --book shop.db send-receipt --params '{"orderId": "o-17"}'`;

const commands: readonly ((jobs: Command) => void)[] = [
  ...[listJobs, showJob, explainJob, enqueueJob, cancelJob, retryJob, pauseName, resumeName],
];

export function jobs(program: Command): void {
  const group = program
    .command("jobs")
    .description("list, show, explain, enqueue, cancel, retry, pause and resume jobs")
    .helpCommand(false)
    .addHelpText("after", example);
  for (const add of commands) add(group);
}
