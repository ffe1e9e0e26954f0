// Notify: the end of jobs is told to the room that made them, to the webhook of their notice (notice.ts) and to listeners, in the
// transaction that ends them.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { inSlices } from "../../storage/slices.ts";
import { anyOf } from "../../storage/word.ts";
import { jobSettled, kindOf, type Ended, type JobEnded, type Ports } from "../kind.ts";
import { shownNotice, type Notices, type Notified } from "../notice.ts";

/** Tells the rooms that made them, and with `announced` the listeners. */
export async function tellAllEnded(tx: Tx, ports: Ports, all: readonly Ended[], announced = true): Promise<void> {
  for (const [kind, ended] of Map.groupBy(all, ({ job }) => kindOf(ports, job))) await kind.ended(tx, ended);
  // Success is told of only where somebody asked to hear of ends.
  await tellNotices(tx, ports, announced ? all : all.filter(({ outcome }) => outcome.status !== "completed"));
  for (const { job, outcome } of all) {
    if (announced) await ports.announce?.jobEnded(tx, outcome, job);
    if (jobSettled.heard) tx.afterCommit(() => jobSettled.state(outcome));
    if (outcome.status === "failed") tx.afterCommit(() => ports.jobFailed?.(outcome));
  }
}

/** Whether a definition or a template has a notice of success. Most books have none, and spare each end a look. */
export async function tellsOfSuccess(tx: Tx): Promise<boolean> {
  const found = await tx.get(sql`select 1 as one from daybook_definition where notify like '%"completed"%'
    union all select 1 from daybook_job_template where notify like '%"completed"%' limit 1`);
  return found !== undefined;
}

type Kept = {
  readonly name: string | null;
  readonly tenant: string | null;
  readonly template: string | null;
  readonly notify: string;
};

/** Tells of chains of jobs that have ended. A template's own notice stands in for that of the definition. */
async function tellNotices(tx: Tx, { notices }: Ports, all: readonly Ended[]): Promise<void> {
  const over = all.filter(({ outcome }) => outcome.retriedBy === null);
  if (notices === undefined || over.length === 0) return;
  const names = [...new Set(over.map(({ job }) => job.name))];
  const templates = [...new Set(over.flatMap(({ job }) => job.template_id ?? []))];
  const fromTemplates =
    templates.length === 0
      ? sql``
      : sql`union all select null, tenant_id, id, notify from daybook_job_template
          where notify is not null and tenant_id ${anyOf("text", [...new Set(over.map(({ job }) => job.tenant_id))])}
            and id ${anyOf("text", templates)}`;
  const kept = await tx.all<Kept>(sql`select name, null as tenant, null as template, notify from daybook_definition
    where notify is not null and name ${anyOf("text", names)} ${fromTemplates}`);
  if (kept.length === 0) return;
  const told = new Map<string, Notified[]>();
  for (const { job, outcome } of over) {
    const own = kept.find((each) => each.template === job.template_id && each.tenant === job.tenant_id);
    const notify = (own ?? kept.find((each) => each.name === job.name))?.notify;
    if (notify === undefined) continue;
    const said = saidOf({ job, outcome });
    if (told.get(notify)?.push(said) === undefined) told.set(notify, [said]);
  }
  for (const [notify, said] of told) await tellOf(tx, notices, notify, said);
}

function saidOf({ job, outcome }: Ended): Notified {
  const { tenant, ...data }: JobEnded = outcome;
  const { status, id, name } = data;
  const runId = data.run?.id ?? job.run_id;
  return { tenant, end: status, type: `job.${status}`, id, name, data, runId, rootRunId: job.root_run_id ?? runId };
}

/** Tells of those ends that the notice is for. */
export async function tellOf(tx: Tx, notices: Notices, notify: string, all: readonly Notified[]): Promise<void> {
  const on = shownNotice(notify)?.on ?? [];
  const said = all.filter(({ end }) => on.includes(end));
  if (said.length > 0) await inSlices(said, (slice) => notices.send(tx, notify, slice));
}
