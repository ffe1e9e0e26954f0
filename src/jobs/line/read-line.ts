// A queue in the order of dispatch: who stands in line, the next one first. What waits for something does not stand there.
import { invalid } from "../../core/error.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";
import { checkLimit, cutPage, type Page, type PageOptions } from "../../telemetry/report/page.ts";

export type LineOptions = PageOptions;

export type JobInLine = {
  /** 1 is the next one. */
  readonly place: number;
  readonly id: string;
  readonly name: string;
  readonly priority: number;
  readonly position: number;
  readonly createdAt: number;
};

export type LinePage = Page<JobInLine>;

type Row = Omit<JobInLine, "place"> & { readonly seq: number; readonly ahead: number };

/** One statement, so that the places are of one moment. A job that is moved between two pages may be on both or on neither. */
export async function readLine(store: Store, tenant: string, queue: string, options: LineOptions): Promise<LinePage> {
  refuseUnknown(options, ["limit", "after"], "the line of a queue");
  const limit = checkLimit(options.limit);
  const lane = sql`(select seq from daybook_lane where tenant_id = ${tenant} and queue = ${checkName(queue, "queue")})`;
  const { ahead, behind } = options.after === undefined ? wholeLine : cutAt(lane, toCursor(options.after));
  const rows = await store.readHeavy<Row>(sql`select line.seq, job.id, job.name, line.priority, line.position,
      job.created_at as "createdAt", ${ahead} as ahead
    from daybook_line line ${indexedBy("jobs_to_claim")} cross join daybook_job job
    where line.status = 'queued' and line.lane_seq = ${lane} ${behind} and job.seq = line.seq
    order by line.priority desc, line.position, line.seq limit ${limit + 1}`);
  const { items, next } = cutPage(rows, limit, fromCursor, ({ seq: _seq, ...job }) => job);
  return { items: items.map(({ ahead, ...job }, index) => ({ place: ahead + index + 1, ...job })), next };
}

type Cursor = Pick<Row, "priority" | "position" | "seq">;

const wholeLine = { ahead: sql`0`, behind: sql`` };

/** How many stand before the cut, counted in two ranges of the index, and the condition for those behind it. */
function cutAt(lane: Sql, { priority, position, seq }: Cursor): { ahead: Sql; behind: Sql } {
  const counted = sql`select count(*) from daybook_line other ${indexedBy("jobs_to_claim")}
    where other.status = 'queued' and other.lane_seq = ${lane}`;
  return {
    ahead: sql`(${counted} and other.priority > ${priority})
      + (${counted} and other.priority = ${priority} and (other.position, other.seq) <= (${position}, ${seq}))`,
    behind: sql`and line.priority <= ${priority}
      and (line.priority < ${priority} or (line.position, line.seq) > (${position}, ${seq}))`,
  };
}

function fromCursor({ priority, position, seq }: Cursor): string {
  return Buffer.from(JSON.stringify([priority, position, seq])).toString("base64url");
}

function toCursor(text: string): Cursor {
  const [priority, position, seq] = numbersOf(text);
  if (priority !== undefined && position !== undefined && seq !== undefined) return { priority, position, seq };
  throw invalid(`${quote(text)} is not a cursor: give "next" of the page before`);
}

function numbersOf(text: string): readonly (number | undefined)[] {
  try {
    const found: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return Array.isArray(found) && found.length === 3 && found.every(Number.isSafeInteger) ? (found as number[]) : [];
  } catch {
    return [];
  }
}
