// daybook runs summary: what became of each job, listener and schedule.
import type { Command } from "commander";
import type { ScopeOptions } from "../../telemetry/report/scope.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { addScopeOptions, scopeOf } from "../scope-options.ts";
import { plainCell, showTable } from "../show.ts";
import { lastErrorCell, ownerCell, summaryJson, tallyCells, tallyHead } from "../telemetry-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Counts come from rollups: they are a few seconds behind, and stay when the runs have left. The last
error is the last in the same stretch of time. Percentiles are those of buckets that double.

Example:
  $ daybook runs summary --book home.db --kind schedule --since 7d
  $ daybook runs summary --book home.db --session 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function summary(runs: Command): void {
  const command = runs
    .command("summary")
    .description("sum up each job, listener and schedule: runs, errors, durations, the last error");
  addScopeOptions(command).option("--session <id>", "only what this session ran, in all its time");
  addPageOptions(command)
    .addHelpText("after", example)
    .action(({ limit, after, ...options }: ScopeOptions & PageOptions) =>
      withBook(command, looking, async (book) => {
        const page = { limit, ...(after === undefined ? {} : { after }) };
        const { items, next } = await book.telemetry.summaries({ ...scopeOf(options), ...page });
        return {
          json: { items: items.map(summaryJson), next },
          text: async () => {
            if (items.length === 0) return "Nothing ran in that time.";
            const rows = items.map((each) => [
              ...[each.kind, plainCell(each.name, 32), ownerCell(each.app), ...tallyCells(each)],
              lastErrorCell(each.lastError),
            ]);
            const head = ["kind", "name", "app", ...tallyHead, "last error"];
            return [await showTable(head, rows), ...nextPage(command, next)].join("\n");
          },
        };
      }),
    );
}
