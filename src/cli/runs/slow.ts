// daybook runs slow: what took longest.
import type { Command } from "commander";
import type { ScopeOptions } from "../../telemetry/report/scope.ts";
import { showStatus } from "../job-words.ts";
import { runJson } from "../run-words.ts";
import { addScopeOptions, scopeOf } from "../scope-options.ts";
import { plainCell, showTable, timeCell } from "../show.ts";
import { ownerCell, showMs } from "../telemetry-words.ts";
import { wholeNumber } from "../whole-number.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Example:
  $ daybook runs slow --book home.db --app kitchen --since 7d --limit 5`;

export function slow(runs: Command): void {
  const command = runs.command("slow").description("list the runs that took longest in a stretch of time");
  addScopeOptions(command)
    .option("--session <id>", "only what this session ran, in all its time")
    .option("--limit <n>", "how many to list", wholeNumber("--limit"), 20)
    .addHelpText("after", example)
    .action(({ limit, ...options }: ScopeOptions & { readonly limit: number }) =>
      withBook(command, looking, async (book) => {
        const items = await book.telemetry.slow({ ...scopeOf(options), limit });
        return {
          json: { items: items.map(runJson) },
          text: () =>
            items.length === 0
              ? "Nothing ran in that time, or what ran has left."
              : showTable(
                  ["took", "id", "kind", "name", "app", "status", "started"],
                  items.map((run) => [
                    ...[showMs(run.durationMs), run.id, run.kind, plainCell(run.registration ?? run.name, 32)],
                    ...[ownerCell(run.app), showStatus(run.status), timeCell(run.startedAt)],
                  ]),
                ),
        };
      }),
    );
}
