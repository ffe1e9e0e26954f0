import { Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { Discard, Redrive } from "./dead-letters.tsx";

export function DeadLetterPage() {
  const id = usePathParam("id");
  const asks = { verb: "deadLetters.show", input: { id } } as const;
  const letter = useVerb(asks.verb, asks.input, { topics: ["run.ended"] });
  const { data } = letter;
  return (
    <Page
      title={data === undefined ? "Dead letter" : `${data.topic} to ${data.listener}`}
      crumbs={[{ text: "Dead letters", href: href("/dead-letters") }]}
      beside={data === undefined ? null : <Status status={data.status} />}
      asks={asks}
      actions={
        data === undefined ? null : (
          <>
            <Redrive which={{ id }} what="this letter" onDone={letter.again} />
            <Discard which={{ id }} what="this letter" onDone={letter.again} />
          </>
        )
      }
    >
      <Answer of={letter}>
        {(shown) => (
          <div class="stack">
            <Panel title={shown.error.type}>
              <p class="error-text">
                <bdi>{shown.error.message}</bdi>
              </p>
            </Panel>
            <Panel title="Facts">
              <KeyValues
                facts={[
                  [
                    "Listener",
                    <a key="l" href={href(`/listeners/${segment(shown.listener)}`)}>
                      {shown.listener}
                    </a>,
                  ],
                  ["Event", <Id key="e" id={shown.eventId} href={href(`/events/${shown.eventId}`)} />],
                  ["Last delivery", <Id key="j" id={shown.jobId} href={href(`/jobs/${shown.jobId}`)} />],
                  ["Attempts", String(shown.attempts)],
                  ["First failed", <Time key="f" at={shown.firstFailedAt} whole />],
                  ["Last failed", <Time key="a" at={shown.failedAt} whole />],
                  ["Redriven", shown.redrives === 0 ? null : `${shown.redrives} times`],
                  ["Reason", shown.reason],
                ]}
              />
            </Panel>
            <Panel title="Payload">
              <JsonView value={shown.payload} label="Payload" />
            </Panel>
          </div>
        )}
      </Answer>
    </Page>
  );
}
