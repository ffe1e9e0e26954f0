import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { CopyButton, Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, Code, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { Chain } from "./chain.tsx";
import { EnqueueDialog } from "./enqueue.tsx";

type Job = VerbAnswer<"jobs.show">;

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
      actions={data === undefined ? null : <Actions job={data} again={job.again} />}
      asks={asks}
    >
      <Answer of={job}>{(shown) => <JobDetails job={shown} />}</Answer>
    </Page>
  );
}

function JobDetails({ job }: { readonly job: Job }) {
  const { run } = job;
  const isOpen = job.status === "waiting" || job.status === "queued" || job.status === "running";
  return (
    <div class="stack">
      {isOpen || job.status === "failed" ? <Why id={job.id} /> : null}
      {run?.error == null ? null : (
        <Panel
          title={run.error.type}
          actions={
            <CopyButton
              text={`${run.error.type}: ${run.error.message}\n${run.error.trace ?? ""}`}
              label="Copy the error"
            />
          }
        >
          <p class="error-text">
            <bdi>{run.error.message}</bdi>
          </p>
          {run.error.trace === null ? null : <Code text={run.error.trace} label="Trace" />}
        </Panel>
      )}
      <div class="columns wide-left">
        <div class="stack">
          <Panel
            title="What happened"
            note={job.chain.length > 1 ? `${job.chain.length} jobs in this chain` : undefined}
          >
            <Chain job={job} />
          </Panel>
          {job.logs.length === 0 ? null : (
            <Panel title="Log" note={`${job.logs.length} lines`}>
              <ol class="log">
                {job.logs.map(({ at, level, message }, index) => (
                  <li key={index} class={level}>
                    <Time at={at} whole /> <b>{level}</b> <bdi>{message}</bdi>
                  </li>
                ))}
              </ol>
            </Panel>
          )}
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
          <Panel title="Params">
            <JsonView value={job.params} label="Params" />
          </Panel>
          {run === null || run.result === undefined || run.result === null ? null : (
            <Panel title="Result">
              <JsonView value={run.result} label="Result" />
            </Panel>
          )}
        </div>
      </div>
    </div>
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

function Actions({ job, again }: { readonly job: Job; readonly again: () => void }) {
  const url = useUrl();
  const [isMaking, setMaking] = useState(false);
  const { id, status, retriedBy } = job;
  const may = whyNot("operate");
  const isOpen = status === "waiting" || status === "queued" || status === "running";
  const noRetry =
    may ??
    (isOpen
      ? "It has not ended"
      : retriedBy === null
        ? status === "completed"
          ? "It has completed; run it anew instead"
          : undefined
        : "It was tried again already");
  return (
    <>
      <Button
        icon="retry"
        hotkey="r"
        whyNot={noRetry}
        onPress={async () => {
          const made = await ask("jobs.retry", { id });
          tell(`${made.name} is tried again`);
          url.go(`/jobs/${segment(made.id)}`);
        }}
      >
        Retry
      </Button>
      <Button
        icon="close"
        whyNot={may ?? (isOpen ? undefined : "It has ended")}
        onPress={async () => {
          const done = await ask("jobs.cancel", { id });
          tell(done.status === "cancelled" ? "It is cancelled" : "It was told to stop");
          again();
        }}
      >
        Cancel
      </Button>
      <Button icon="copy" whyNot={may} onPress={() => setMaking(true)}>
        Run anew
      </Button>
      {isMaking ? (
        <EnqueueDialog
          begun={{ name: job.name, params: job.params, queue: job.queue }}
          onClose={() => setMaking(false)}
        />
      ) : null}
    </>
  );
}
