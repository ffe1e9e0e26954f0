// daybook runs overview: all runs of a stretch together, by kind, by app and over time.
import type { Command } from "commander";
import type { Book } from "../../book/book.ts";
import { isoTime } from "../../core/time.ts";
import type { ScopeOptions } from "../../telemetry/report/scope.ts";
import type { Answer } from "../answer.ts";
import { addScopeOptions, scopeOf } from "../scope-options.ts";
import { plainCell, showTable } from "../show.ts";
import { tallyCells, tallyHead } from "../telemetry-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Health is the share of runs that did not fail: excellent (all), good (95 % or more), warning (90 % or
more), critical.

Example:
  $ daybook runs overview --book home.db --since 7d`;

export function overview(runs: Command): void {
  const command = runs
    .command("overview")
    .description("sum up all runs of a stretch of time, by kind, by app and over time");
  addScopeOptions(command)
    .addHelpText("after", example)
    .action((options: ScopeOptions) => withBook(command, looking, (book) => answerOf(book, scopeOf(options))));
}

async function answerOf(book: Book, scope: ScopeOptions): Promise<Answer> {
  const { since, until, ...cards } = await book.telemetry.overview(scope);
  const apps = await book.telemetry.apps(scope);
  const buckets = await book.telemetry.buckets(scope);
  return {
    json: {
      ...{ since: isoTime(since), until: isoTime(until), ...cards, apps },
      buckets: buckets.map((bucket) => ({ ...bucket, at: isoTime(bucket.at) })),
    },
    text: async () => {
      const rows = [
        ["all", ...tallyCells(cards)],
        ...cards.byKind.map((each) => [each.kind, ...tallyCells(each)]),
        ...apps.map((each) => [plainCell(`app ${each.app}`, 40), ...tallyCells(each)]),
      ];
      const { runs, logs, events } = cards.dropped ?? { runs: 0, logs: 0, events: 0 };
      const lost = runs + logs + events === 0 ? "" : `\ndropped: ${events} events, ${runs} runs, ${logs} log lines`;
      const line = `${isoTime(since)} to ${isoTime(until)}, ${cards.sessionsRunning} sessions running`;
      return `${line}\n\n${await showTable(["", ...tallyHead], rows)}\n\n${sparkline(buckets)}${lost}`;
    },
  };
}

const bars = "▁▂▃▄▅▆▇█";

function sparkline(buckets: readonly { readonly runs: number }[]): string {
  const most = buckets.reduce((max, { runs }) => Math.max(max, runs), 1);
  return buckets.map(({ runs }) => (runs === 0 ? " " : (bars[Math.ceil((7 * runs) / most)] ?? ""))).join("");
}
