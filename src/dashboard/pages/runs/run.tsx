import { Button } from "../../parts/button.tsx";
import { CausesPanel } from "../../parts/cause-graph.tsx";
import { Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { ErrorPanel, LogPanel } from "../../parts/outcome.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

export function RunPage() {
  const id = usePathParam("id");
  const asks = { verb: "runs.show", input: { id } } as const;
  const run = useVerb(asks.verb, asks.input);
  return (
    <Page
      title={run.data?.name ?? "Run"}
      crumbs={[{ text: "Runs", href: href("/runs") }]}
      beside={run.data === undefined ? null : <Status status={run.data.status} />}
      asks={asks}
      actions={
        <Button
          icon="link"
          whyNot={whyNot("operate")}
          onPress={async () => {
            await ask("runs.pin", { id });
            tell("It stays when retention removes others");
          }}
        >
          Keep
        </Button>
      }
    >
      <Answer of={run}>
        {(data) => (
          <div class="stack">
            {data.error === null ? null : <ErrorPanel error={data.error} />}
            <Panel title="Facts">
              <KeyValues
                facts={[
                  ["Id", <Id key="i" id={data.id} />],
                  ["Kind", data.kind],
                  ["Started", <Time key="s" at={data.startedAt} whole />],
                  ["Ended", <Time key="e" at={data.endedAt} whole />],
                  ["Took", <Took key="t" ms={data.durationMs} />],
                  ["Attempt", String(data.attempt)],
                  [
                    "Job",
                    data.jobId === null ? null : (
                      <Id key="j" id={data.jobId} href={href(`/jobs/${segment(data.jobId)}`)} />
                    ),
                  ],
                  [
                    "Event",
                    data.event === null ? null : data.event.id === null ? (
                      data.event.topic
                    ) : (
                      <a key="ev" href={href(`/events/${segment(data.event.id)}`)}>
                        {data.event.topic}
                      </a>
                    ),
                  ],
                  [
                    "App",
                    data.app === null ? null : (
                      <a
                        key="a"
                        href={href(`/apps/${segment(data.app.key)}`)}
                      >{`${data.app.key} #${data.app.instance}`}</a>
                    ),
                  ],
                  [
                    "Session",
                    data.sessionId === null ? null : (
                      <Id key="se" id={data.sessionId} href={href(`/sessions/${data.sessionId}`)} />
                    ),
                  ],
                  [
                    "Caused by",
                    data.cause === null ? null : (
                      <Id key="c" id={data.cause.runId} href={href(`/runs/${data.cause.runId}`)} />
                    ),
                  ],
                ]}
              />
            </Panel>
            <LogPanel logs={data.logs} />
            {data.result === null || data.result === undefined ? null : (
              <Panel title="Result">
                <JsonView value={data.result} label="Result" />
              </Panel>
            )}
            <CausesPanel id={data.id} />
          </div>
        )}
      </Answer>
    </Page>
  );
}
