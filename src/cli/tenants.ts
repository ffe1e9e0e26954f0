// daybook tenants: whose work is in the book.
import type { Command } from "commander";
import { showTable } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
It is about the whole book, whatever --tenant says.

Example:
  $ daybook tenants --book shop.db`;

type Tenant = { tenant: string; queues: number; jobs: number; calls: number };

export function tenants(program: Command): void {
  program
    .command("tenants")
    .description("list the tenants that have work in the book, with what they have not ended")
    .addHelpText("after", example)
    .action((_options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const rows = await book.read(
          (tx) => tx.sql<Tenant>`select lane.tenant_id as tenant, count(*) as queues,
              (select count(*) from daybook_line line join daybook_job job on job.seq = line.seq
                where job.tenant_id = lane.tenant_id) as jobs,
              (select count(*) from daybook_call call where call.tenant_id = lane.tenant_id
                and call.status in ('scheduled', 'running')) as calls
            from daybook_lane lane group by lane.tenant_id order by lane.tenant_id`,
        );
        const items = rows.map((row) => ({
          ...{ tenant: row.tenant, queues: Number(row.queues), jobs: Number(row.jobs), calls: Number(row.calls) },
        }));
        return {
          json: { items },
          text: () =>
            items.length === 0
              ? "Nobody has had work in this book yet."
              : showTable(
                  ["tenant", "queues", "open jobs", "open calls"],
                  items.map((each) => [each.tenant, String(each.queues), String(each.jobs), String(each.calls)]),
                ),
        };
      }),
    );
}
