// daybook schedules: jobs that are due again and again, and what became of each slot.
import type { Command } from "commander";
import { addSchedule, editSchedule } from "./schedules/add.ts";
import { backfillSchedule } from "./schedules/backfill.ts";
import { listSchedules } from "./schedules/list.ts";
import { previewSchedule } from "./schedules/preview.ts";
import { pruneSchedules } from "./schedules/prune.ts";
import { showSchedule } from "./schedules/show.ts";
import { steerSchedules } from "./schedules/steer.ts";
import { whySchedule } from "./schedules/why.ts";

const groupExample = `
Every slot, a moment at which a schedule is due, is decided once, and the decision is kept
(docs/schedules.md). Schedules fire while somebody works: daybook run, or a program that does.

Example:
  $ daybook schedules add --book shop.db receipts --daily 07:00 --zone Europe/Madrid --job send-receipts
  $ daybook schedules why --book shop.db receipts 2026-03-29T05:00:00Z`;

export function schedules(program: Command): void {
  const group = program
    .command("schedules")
    .description("list, make, change, preview and fire schedules, and say why one did or did not run")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  const commands = [listSchedules, showSchedule, addSchedule, editSchedule, steerSchedules];
  for (const add of [...commands, previewSchedule, backfillSchedule, whySchedule, pruneSchedules]) add(group);
}
