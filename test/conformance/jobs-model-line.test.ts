import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { assertInvariants, pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const work = job("work", { queue: "line", run: (_params: { n: number }) => undefined });
const tenants = ["default", "acme"] as const;

type Command = { tenant: (typeof tenants)[number]; which: number } & (
  | { do: "enqueue"; priority: number; delayMs: number }
  | { do: "move"; to: "first" | "last" | "before" | "after"; other: number; times: number }
  | { do: "prioritise" | "replace"; priority: number }
  | { do: "claim"; want: number }
  | { do: "cancel" | "shutDown" | "normalise" }
  | { do: "pass"; ms: number }
);

const common = { tenant: fc.constantFrom(...tenants), which: fc.nat() };
const priority = fc.constantFrom(-5, 0, 0, 0, 5);
const does = <Name extends string>(...names: Name[]): fc.Arbitrary<Name> => fc.constantFrom(...names);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ ...common, do: does("enqueue"), priority, delayMs: fc.constantFrom(0, 0, 0, 20) }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      ...common,
      do: does("move"),
      to: does("first", "last", "before", "before", "after", "after"),
      other: fc.nat(),
      times: fc.constantFrom(1, 1, 1, 12),
    }),
  },
  { weight: 3, arbitrary: fc.record({ ...common, do: does("prioritise", "prioritise", "replace"), priority }) },
  { weight: 2, arbitrary: fc.record({ ...common, do: does("claim"), want: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ ...common, do: does("cancel", "shutDown", "shutDown", "normalise") }) },
  { weight: 1, arbitrary: fc.record({ ...common, do: does("pass"), ms: fc.constantFrom(5, 20) }) },
);

// The model: for each tenant an array of those that stand in line, in its order.
type Entry = { id: string; n: number; priority: number; dueAt: number };

for (const backend of backends) {
  describe(backend, () => {
    test("whatever is moved, the line is what an array would be, for each tenant, and no two share a place", async (t) => {
      await tellStories(t, backend, { use: [work], command, tell });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const lines: Record<string, Entry[]> = { default: [], acme: [] };
  const running: Record<string, ClaimedJob[]> = { default: [], acme: [] };
  let made = 0;

  for (const each of commands) {
    const line = lines[each.tenant] ?? [];
    const out = running[each.tenant] ?? [];
    const { jobs, queues } = at.tenant(each.tenant);
    const entry = pick(line, each.which);
    switch (each.do) {
      case "enqueue": {
        const n = made++;
        const options = { priority: each.priority, in: each.delayMs, key: `k${n}` };
        const { id } = await jobs.enqueue(work, { n }, options);
        place(line, { id, n, priority: each.priority, dueAt: at.clock.now() + each.delayMs }, "last");
        break;
      }
      case "move": {
        // Back and forth, so that gaps are used up.
        for (let time = 0; time < each.times && entry !== undefined; time++) {
          const others = line.filter((one) => one.priority === entry.priority && one !== entry);
          const other = pick(others, each.other + (time % 2));
          if (each.to === "first" || each.to === "last") {
            await jobs.move(entry.id, each.to);
            place(line, entry, each.to);
          } else if (other !== undefined) {
            await jobs.move(entry.id, each.to === "before" ? { before: other.id } : { after: other.id });
            place(line, entry, { [each.to]: other });
          }
        }
        break;
      }
      case "prioritise":
        if (entry === undefined || entry.priority === each.priority) break;
        await jobs.prioritise(entry.id, each.priority);
        entry.priority = each.priority;
        place(line, entry, "last");
        break;
      case "replace":
        if (entry === undefined) break;
        await jobs.enqueue(
          work,
          { n: entry.n },
          { key: `k${entry.n}`, priority: each.priority, onConflict: "replace" },
        );
        entry.dueAt = at.clock.now();
        if (entry.priority !== each.priority)
          await takeFromBook(at, each.tenant, line, { ...entry, priority: each.priority });
        break;
      case "claim": {
        await at.turn(0, at.claimer(), { lookForDue: true });
        const due = line.filter((one) => one.dueAt <= at.clock.now()).slice(0, each.want);
        if (due.length === 0) break;
        const other = tenants.find((one) => one !== each.tenant) ?? "";
        await at.tenant(other).queues.pause("line");
        const claimed = await at.claim(each.want, at.claimer());
        await at.tenant(other).queues.resume("line");
        assert.deepEqual(
          claimed.map((one) => one.id),
          due.map((one) => one.id),
        );
        for (const one of due) line.splice(line.indexOf(one), 1);
        out.push(...claimed);
        break;
      }
      case "shutDown": {
        const [ended] = out.splice(each.which % Math.max(1, out.length), 1);
        if (ended === undefined) break;
        await at.end(ended, { status: "cancelled", shutdown: true });
        const [row] = await at.rows<{ id: string; priority: number }>(
          `select id, priority from daybook_job_now where retry_of = ${ended.seq}`,
        );
        const { n } = JSON.parse(ended.params) as { n: number };
        await takeFromBook(at, each.tenant, line, { id: row?.id ?? "", n, priority: row?.priority ?? 0, dueAt: 0 });
        break;
      }
      case "cancel":
        if (entry === undefined) break;
        await jobs.cancel(entry.id);
        line.splice(line.indexOf(entry), 1);
        break;
      case "normalise": {
        if (made === 0 || (await queues.list()).length === 0) break;
        const dry = await queues.normalise("line", { dryRun: true });
        assert.deepEqual(await queues.normalise("line"), dry);
        assert.deepEqual(await queues.normalise("line"), { jobs: line.length + out.length, changed: 0 });
        break;
      }
      case "pass":
        await at.clock.advance(each.ms);
        break;
    }
    for (const tenant of tenants)
      assert.deepEqual(
        await order(at, tenant),
        (lines[tenant] ?? []).map((one) => one.id),
      );
    await assertInvariants(at);
  }
}

/** Puts an entry where it is moved to: next to another, or at an end of its priority. */
function place(line: Entry[], entry: Entry, to: "first" | "last" | { before?: Entry; after?: Entry }): void {
  const old = line.indexOf(entry);
  if (old >= 0) line.splice(old, 1);
  const lower = line.findIndex((one) => one.priority < entry.priority);
  const notHigher = line.findIndex((one) => one.priority <= entry.priority);
  let index = to === "last" ? lower : notHigher;
  if (typeof to === "object") {
    index = to.before === undefined ? line.indexOf(to.after as Entry) + 1 : line.indexOf(to.before);
  }
  line.splice(index < 0 ? line.length : index, 0, entry);
}

/** Where one comes back to is the book's to say; the others must stand as they stood. */
async function takeFromBook(at: TestEngine, tenant: string, line: Entry[], entry: Entry): Promise<void> {
  const index = line.findIndex((one) => one.id === entry.id);
  if (index >= 0) line.splice(index, 1);
  const found = (await order(at, tenant)).indexOf(entry.id);
  assert.ok(found >= 0);
  line.splice(found, 0, entry);
}

async function order(at: TestEngine, tenant: string): Promise<string[]> {
  const rows = await at.rows<{ id: string }>(`select id from daybook_job_now where status in ('queued', 'waiting')
    and tenant_id = '${tenant}' order by priority desc, position, seq`);
  return rows.map((row) => row.id);
}
