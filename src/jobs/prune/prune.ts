// Prune: finished jobs leave with everything that is theirs. It walks over the jobs by ranges of their numbers, off the
// event loop, and removes what may leave in slices, each a short transaction of its own, so that writers get their turn
// in between and a prune that is cut off has done the part it did.
import { unlink } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import type { ReadRows } from "../definition/stored-definition.ts";
import type { JobHooks } from "../hooks.ts";
import { findRoots, isFree, mayLeave, readFamilies, type Family } from "./family.ts";
import { removeFamilies } from "./remove.ts";
import { pruneReservations } from "./reservations.ts";
import { toRule, type PruneOptions, type Rule } from "./rule.ts";
import { pinnedRuns } from "../../telemetry/kept-run.ts";
import { foldRuns } from "../../telemetry/rollup/folder.ts";
import { add, nothing, rowsOf, runIdsOf, weigh, type Removed } from "./weigh.ts";

export type Pruned = Removed & {
  /** True: this is what would be removed, and nothing was. */
  readonly dryRun: boolean;
  /** In how many transactions. */
  readonly slices: number;
  /** How many of `files` were deleted: those in the book's own folder that were there. */
  readonly filesDeleted: number;
};

/** `folder` is where the book keeps its files; `onPruned` takes along what other rooms keep for their jobs. */
export async function prune(
  store: Store,
  tenant: string,
  folder: string,
  options: PruneOptions,
  onPruned: NonNullable<JobHooks["onPruned"]> = {},
): Promise<Pruned> {
  const rule = await toRule(store, tenant, options);
  const dryRun = options.dryRun === true;
  let [removed, slices, filesDeleted] = [nothing, 0, 0];
  if (rule === undefined) return { ...removed, dryRun, slices, filesDeleted };
  // A run leaves its mark in the rollups before it leaves.
  if (!dryRun) await foldRuns(store);
  for await (const slice of rule.noJobs ? [] : slicesOf(leaving(store, rule, Object.keys(onPruned)))) {
    const gone = dryRun
      ? slice.map(({ weight }) => weight).reduce(add)
      : await store.write(
          (tx) =>
            removeFamilies(
              tx,
              rule,
              slice.map(({ family }) => family),
              onPruned,
            ),
          { tenant },
        );
    if (gone.jobs === 0) continue;
    removed = add(removed, gone);
    slices++;
    // After the commit: a row without its file is a gap in the history, a file without its row is only in the way.
    if (!dryRun) filesDeleted += await deleteFiles(folder, gone.files);
  }
  const byHand = await pruneReservations(store, rule, dryRun);
  removed = { ...removed, reservations: removed.reservations + byHand.reservations };
  slices += byHand.slices;
  return { ...removed, dryRun, slices, filesDeleted };
}

type Weighed = { readonly family: Family; readonly weight: Removed };

/** As many families as stay within the limit; one that is over it by itself leaves alone. */
async function* slicesOf(families: AsyncIterable<Weighed>): AsyncGenerator<Weighed[]> {
  let [slice, rows]: [Weighed[], number] = [[], 0];
  for await (const each of families) {
    const own = rowsOf(each.weight);
    if (slice.length > 0 && rows + own > limits.pruneRowsMax) {
      yield slice;
      [slice, rows] = [[], 0];
    }
    slice.push(each);
    rows += own;
  }
  if (slice.length > 0) yield slice;
}

/** The families that may leave. Jobs that are made meanwhile are not looked at. */
async function* leaving(store: Store, rule: Rule, kinds: readonly string[]): AsyncGenerator<Weighed> {
  const read: ReadRows = (statement) => store.readHeavy(statement);
  const [end] = await read<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job`);
  for (let after = 0; end?.seq != null && after < end.seq;) {
    const to = await endOfRange(read, after);
    const found = await readFamilies(read, await findRoots(read, rule, { after, to }));
    const pinned = await pinnedRuns(read, rule.tenant, runIdsOf(found));
    const families = found.filter((family) => mayLeave(rule, family) && isFree(family, pinned));
    const weights = await weigh(read, rule.tenant, families, kinds);
    for (const [index, family] of families.entries()) yield { family, weight: weights[index] ?? nothing };
    after = to;
  }
}

// Counted in rows, not in numbers: what earlier prunes have removed leaves wide gaps.
async function endOfRange(read: ReadRows, after: number): Promise<number> {
  const [range] = await read<{ seq: number | null }>(sql`select max(seq) as seq
    from (select seq from daybook_job where seq > ${after} order by seq limit ${limits.pruneRowsMax}) as next`);
  return range?.seq ?? Number.MAX_SAFE_INTEGER;
}

// Their rows are gone by then, so nothing here may fail the prune: a file that cannot be deleted is left, and is not counted.
// Only files that stand in the book's own folder are touched, whatever a row says.
async function deleteFiles(folder: string, paths: readonly string[]): Promise<number> {
  const own = paths.filter((path) => isAbsolute(path) && dirname(resolve(path)) === resolve(folder));
  let deleted = 0;
  for (const path of own) {
    try {
      await unlink(path);
      deleted++;
    } catch {
      // It may be gone already, or be on another machine.
    }
  }
  return deleted;
}
