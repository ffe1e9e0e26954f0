// The chain of a job: each run of it and what lay between, as one timeline.
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Id } from "../../parts/copy.tsx";
import { Status, toneOf } from "../../parts/status.tsx";
import { Timeline, type Happening } from "../../parts/timeline.tsx";
import { duration } from "../../state/clock.ts";
import { href, segment } from "../../state/url.ts";

type Job = VerbAnswer<"jobs.show">;
type Link = Job["chain"][number];

export function Chain({ job }: { readonly job: Job }) {
  const links = job.chain.length === 0 ? [job] : job.chain;
  return (
    <Timeline
      label="The chain of this job"
      of={links.flatMap((link, index) => happeningsOf(link, index, link.id === job.id))}
    />
  );
}

function happeningsOf(link: Link, index: number, isThis: boolean): Happening[] {
  const { createdAt, startedAt, status, run, attempt, availableAt, waitsFor } = link;
  const what = isThis ? null : <Id id={link.id} href={href(`/jobs/${segment(link.id)}`)} />;
  const found: Happening[] = [
    {
      at: createdAt,
      title: index === 0 ? "Enqueued" : `Retry, attempt ${attempt}`,
      note: what,
    },
  ];
  if (startedAt !== null) found.push({ at: startedAt, title: "Started", tone: "busy" });
  if (run !== null) {
    found.push({
      at: run.endedAt,
      title: <Status status={run.status} />,
      tone: toneOf(run.status),
      after: `after ${duration(run.durationMs)}`,
      note:
        run.error === null ? null : (
          <bdi class="error-line">
            {run.error.type}: {run.error.message.slice(0, 400)}
          </bdi>
        ),
    });
  } else if (link.finishedAt !== null) {
    found.push({ at: link.finishedAt, title: <Status status={status} />, tone: toneOf(status) });
  } else if (status === "waiting") {
    found.push({
      at: availableAt,
      title: <Status status="waiting" note={`for ${waitsFor ?? "something"}`} />,
      tone: "warn",
    });
  } else if (status === "queued") {
    found.push({ at: null, title: <Status status="queued" /> });
  }
  return found;
}
