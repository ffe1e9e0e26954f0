// daybook records: what is known, how it came to be, and what it is connected with.
import type { Command } from "commander";
import { changeRecords } from "./records/change.ts";
import { lookAtRecords } from "./records/look.ts";
import { lookBack } from "./records/past.ts";

const groupExample = `
Every version of every record is kept (docs/records.md), so each of these can be asked about
the past as well.

Example:
  $ daybook records list --book shop.db order --filter status eq '"paid"'
  $ daybook records history --book shop.db order o-17`;

export function records(program: Command): void {
  const group = program
    .command("records")
    .description("list, show, compare, follow, write, export and import records")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  for (const add of [lookAtRecords, lookBack, changeRecords]) add(group);
}
