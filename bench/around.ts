// What is built around the engine costs the engine nothing: claims beside many groups and templates, and moves in a long
// line, against the same with few.
import { open, type Book } from "../src/index.ts";
import { tie } from "../src/jobs/state.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { openBare } from "./harness/bare-sqlite.ts";
import { oneByOne, type Load } from "./harness/load.ts";
import { scratch } from "./harness/scratch.ts";
import { cycle, nothing } from "./jobs/cycle.ts";

const groups = 10_000;
const templates = 1000;

export const around: Benchmark = {
  name: "around",
  title: "jobs beside groups and templates, moves in a line",
  async run(report) {
    const empty = await open(scratch("around-empty.db"), { use: [nothing] });
    const book = await open(scratch("around.db"), { use: [nothing] });
    await cycle(book)({ over: () => true }); // the lane exists from here on
    surround(book.location);
    await report.compare(`with ${groups} open groups and ${templates} templates`, cycle(book), [
      { what: "empty", load: cycle(empty), goalMin: 0.67 },
    ]);
    await book.close();
    await empty.close();
    const short = await openLine(1000);
    const long = await openLine(100_000);
    // A search that takes log n steps would be at 0.6.
    await report.compare("move before any other among 100,000 jobs", moves(long), [
      { what: "among 1,000", load: moves(short), goalMin: 0.6 },
    ]);
    await short.book.close();
    await long.book.close();
  },
};

/** Groups of three jobs one after another, of which the first waits for its time; all stand before the measured jobs. */
function surround(path: string): void {
  const db = openBare(path, "full");
  const numbers = (most: number): string =>
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${most})`;
  // Numbers behind those that the book has given. A job has the same in both tables, and the line is written first.
  const lane = "(select min(seq) from daybook_lane)";
  const number = "(select max(seq) from daybook_job) + i";
  const group = "(i + 2) / 3, (i + 2) % 3";
  db.exec(`begin;
    ${numbers(templates)} insert into daybook_job_template (tenant_id, id, name, job_name, params, created_at, updated_at)
      select 'default', 'template-' || i, 'template-' || i, 'nothing', '{}', 1, 1 from n;
    ${numbers(groups)} insert into daybook_job_group (seq, tenant_id, id, mode, on_failure, slots, created_at)
      select i, 'default', 'group-' || i, 'sequential', 'stop', 3, 1 from n;
    ${numbers(3 * groups)} insert into daybook_line (seq, lane_seq, status, waits_for, waits_key, priority, position,
      available_at, ties, group_seq, group_slot)
      select ${number}, ${lane}, 'waiting', case i % 3 when 1 then 'time' else 'group' end,
        case when i % 3 <> 1 then 'group-' || (i + 2) / 3 end, 100, i * 100, 4102444800000, ${tie.group}, ${group} from n;
    ${numbers(3 * groups)} insert into daybook_job (seq, tenant_id, id, lane_seq, name, priority, created_at, due_at, params,
      attempts, losses_max, group_seq, group_slot, template_id)
      select ${number}, 'default', 'member-' || i, ${lane}, 'nothing', 100, 1, 4102444800000, '{}', 4, 3, ${group},
        'template-' || (1 + i % ${templates}) from n;
    commit; analyze`);
  db.close();
}

type Line = { readonly book: Book; readonly ids: readonly string[] };

async function openLine(length: number): Promise<Line> {
  const book = await open(scratch(`line-${length}.db`), { use: [nothing] });
  const ids: string[] = [];
  const many = Array.from({ length: 1000 }, (_, n) => ({ n }));
  while (ids.length < length) ids.push(...(await book.jobs.enqueueMany(nothing, many)).map(({ id }) => id));
  return { book, ids };
}

/** Each move takes one from somewhere to somewhere else, by strides that never meet. */
function moves({ book, ids }: Line): Load {
  let count = 0;
  const at = (place: number): string => ids[place % ids.length] ?? "";
  return oneByOne(() => {
    count++;
    return book.jobs.move(at(count * 613), { before: at(count * 389 + 7) });
  });
}
