// Whether somebody should look, and where.
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Icon } from "../../parts/icon.tsx";
import { href } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Reason = VerbAnswer<"book.health">["reasons"][number];

const pages: Readonly<Record<Reason["about"], string>> = {
  jobs: "/jobs",
  runs: "/runs",
  schedules: "/schedules",
  "dead-letters": "/dead-letters",
  listeners: "/listeners",
  sinks: "/sinks",
  queues: "/queues",
  telemetry: "/sessions",
  book: "/settings",
};

export function Banner() {
  const { data } = useVerb("book.health", {}, { topics: ["job.created", "run.ended"], everyMs: 15_000 });
  if (data === undefined) return null;
  if (data.verdict === "ok") {
    return (
      <div class="banner ok" role="status">
        <Icon name="check" />
        <span>Work flows: nothing is late, nothing waits for a person.</span>
      </div>
    );
  }
  return (
    <section class={`banner ${data.verdict}`} aria-label={data.verdict === "trouble" ? "Trouble" : "Worth a look"}>
      <Icon name="warn" />
      <div class="grow">
        <b>{data.verdict === "trouble" ? "Trouble" : "Worth a look"}</b>
        <ul class="reasons">
          {data.reasons.map(({ about, because }) => (
            <li key={because}>
              <a href={href(pages[about])}>{about.replace("-", " ")}</a> <bdi>{because}</bdi>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
