import type { VerbAnswer } from "../../../client/verbs.ts";
import { CausesPanel } from "../../parts/cause-graph.tsx";
import { Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { CommandPanel, ErrorPanel, LogPanel } from "../../parts/outcome.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { Chain } from "./chain.tsx";
import { EditParams, JobActions } from "./job-actions.tsx";

type Job = VerbAnswer<"jobs.show">;
type JobProps = { readonly job: Job; readonly again: () => void };

export function JobPage() {
  const id = usePathParam("id");
  const asks = { verb: "jobs.show", input: { id } } as const;
  const job = useVerb(asks.verb, asks.input, { topics: ["run.ended", "job.created"], everyMs: 5000 });
  const { data } = job;
  return (
    <Page
      title={data?.name ?? "Job"}
      crumbs={[{ text: "Jobs", href: href("/jobs") }]}
      beside={
        data === undefined ? null : (
          <Status status={data.status} note={data.waitsFor === null ? null : `for ${data.waitsFor}`} />
        )
      }
      actions={data === undefined ? null : <JobActions job={data} again={job.again} />}
      asks={asks}
    >
      <Answer of={job}>{(shown) => <JobDetails job={shown} again={job.again} />}</Answer>
    </Page>
  );
}

function JobDetails({ job, again }: JobProps) {
  const { run } = job;
  const isOpen = job.status === "waiting" || job.status === "queued" || job.status === "running";
  return (
    <div class="stack">
      {job.progress === null || job.status !== "running" ? null : <Progress of={job.progress} />}
      {isOpen || (job.status === "failed" && run?.error == null) ? <Why id={job.id} /> : null}
      {run?.error == null ? null : <ErrorPanel error={run.error} />}
      <div class="columns wide-left">
        <div class="stack">
          <Panel
            title="What happened"
            note={job.chain.length > 1 ? `${job.chain.length} jobs in this chain` : undefined}
          >
            <Chain job={job} />
          </Panel>
          {run?.command == null ? null : <CommandPanel command={run.command} />}
          <LogPanel logs={job.logs} />
        </div>
        <div class="stack">
          <Panel title="Facts">
            <KeyValues
              facts={[
                ["Id", <Id key="id" id={job.id} />],
                [
                  "Queue",
                  <a key="queue" href={href(`/queues/${segment(job.queue)}`)}>
                    {job.queue}
                  </a>,
                ],
                ["Priority", String(job.priority)],
                ["Attempt", `${job.attempt} of ${job.attempts}`],
                ["Losses", job.losses === 0 ? null : String(job.losses)],
                ["Origin", job.origin],
                ["Made", <Time key="made" at={job.createdAt} />],
                ["Due", isOpen ? <Time key="due" at={job.availableAt} /> : null],
                ["Started", job.startedAt === null ? null : <Time key="started" at={job.startedAt} />],
                ["Took", run === null ? null : <Took key="took" ms={run.durationMs} />],
                ["Key", job.key],
                ["Tags", job.tags.join(", ")],
                [
                  "Template",
                  job.template === null ? null : (
                    <a key="t" href={href(`/templates/${segment(job.template)}`)}>
                      {job.template}
                    </a>
                  ),
                ],
                [
                  "Session",
                  job.sessionId === null ? null : (
                    <Id key="s" id={job.sessionId} href={href(`/sessions/${job.sessionId}`)} />
                  ),
                ],
                ["Run", job.runId === null ? null : <Id key="r" id={job.runId} href={href(`/runs/${job.runId}`)} />],
                [
                  "Caused by",
                  job.cause === null ? null : (
                    <Id key="c" id={job.cause.runId} href={href(`/runs/${job.cause.runId}`)} />
                  ),
                ],
                ["Tells", job.notify === null ? null : `${job.notify.to} when ${job.notify.on.join(" or ")}`],
              ]}
            />
          </Panel>
          <Panel title="Params" actions={<EditParams job={job} again={again} />}>
            <JsonView value={job.params} label="Params" />
          </Panel>
          {run === null || run.result === undefined || run.result === null ? null : (
            <Panel title="Result">
              <JsonView value={run.result} label="Result" />
            </Panel>
          )}
        </div>
      </div>
      <CausesPanel id={job.id} />
    </div>
  );
}

function Progress({ of: { done, note } }: { readonly of: NonNullable<Job["progress"]> }) {
  const percent = Math.round(Math.min(1, Math.max(0, done)) * 100);
  return (
    <Panel title="Progress" note={`${percent} %`}>
      <progress max={100} value={percent} aria-label="Progress" />
      {note === null ? null : (
        <p class="soft small">
          <bdi>{note.slice(0, 400)}</bdi>
        </p>
      )}
    </Panel>
  );
}

function Why({ id }: { readonly id: string }) {
  const { data } = useVerb("jobs.explain", { id }, { topics: ["run.ended"], everyMs: 5000 });
  if (data === undefined || data.because.length === 0) return null;
  return (
    <Panel title={data.status === "failed" ? "Why it failed" : "Why it has not run"} note={data.reason}>
      <ul class="because">
        {data.because.map((sentence) => (
          <li key={sentence}>
            <bdi>{sentence}</bdi>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
