import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { CopyButton, Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, bytesText, Code, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status, toneOf } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { Timeline, type Happening } from "../../parts/timeline.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { duration } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { Phases } from "./phases.tsx";

type Call = VerbAnswer<"calls.show">;
type Request = Call["request"];

export function CallPage() {
  const id = usePathParam("id");
  const asks = { verb: "calls.show", input: { id } } as const;
  const call = useVerb(asks.verb, asks.input, { topics: ["run.ended"], everyMs: 5000 });
  const [revealed, setRevealed] = useState<Call | undefined>(undefined);
  const { data } = call;
  return (
    <Page
      title={data?.name ?? "Call"}
      crumbs={[{ text: "Calls", href: href("/calls") }]}
      beside={data === undefined ? null : <Status status={data.status} />}
      asks={asks}
      actions={data === undefined ? null : <Actions call={data} again={call.again} onReveal={setRevealed} />}
    >
      <Answer of={call}>{(shown) => <Details call={revealed?.id === shown.id ? revealed : shown} />}</Answer>
    </Page>
  );
}

function Details({ call }: { readonly call: Call }) {
  const isOpen = call.status === "scheduled" || call.status === "running";
  return (
    <div class="stack">
      {isOpen || call.status === "failed" ? <Why id={call.id} /> : null}
      <div class="columns wide-left">
        <div class="stack">
          <Panel title="What happened">
            <Timeline label="What happened to this call" of={happeningsOf(call)} />
          </Panel>
          {call.attempts.map((attempt, index) => (
            <Panel key={index} title={`Attempt ${index + 1}`} note={<Time at={attempt.startedAt} whole />}>
              <Phases phases={attempt.phases} />
              <Attempt attempt={attempt} />
            </Panel>
          ))}
        </div>
        <div class="stack">
          <Panel title="Request" note={call.kept === "sealed" ? "sealed: shown by role" : undefined}>
            <RequestShown request={call.request} />
          </Panel>
          <Panel title="Facts">
            <KeyValues
              facts={[
                ["Id", <Id key="i" id={call.id} />],
                [
                  "Host",
                  <a key="h" href={href("/calls", { q: `host:${call.host}` })}>
                    {call.host}
                  </a>,
                ],
                ["Due", <Time key="d" at={call.dueAt} whole />],
                ["Attempts", `${call.outcome?.attempts ?? call.attempts.length} of ${call.policy.attempts}`],
                ["Timeout", duration(call.policy.timeoutMs)],
                ["Backoff", call.policy.backoff],
                ["Redirects", call.policy.redirects === 0 ? "refused" : String(call.policy.redirects)],
                ["Tags", call.tags.join(", ")],
                ["Belongs to", <Id key="c" id={call.correlationId} />],
                ["Idempotency-Key sent", <Id key="k" id={call.sendKey} />],
                [
                  "Sent again from",
                  call.resendOf === null ? null : (
                    <Id key="r" id={call.resendOf} href={href(`/calls/${call.resendOf}`)} />
                  ),
                ],
                [
                  "Job",
                  call.jobId === null ? null : (
                    <Id key="j" id={call.jobId} href={href(`/jobs/${segment(call.jobId)}`)} />
                  ),
                ],
              ]}
            />
          </Panel>
        </div>
      </div>
    </div>
  );
}

function happeningsOf({ submittedAt, dueAt, startedAt, finishedAt, status, outcome }: Call): Happening[] {
  const found: Happening[] = [{ at: submittedAt, title: "Submitted" }];
  if (dueAt - submittedAt > 1000) found.push({ at: dueAt, title: "Due" });
  if (startedAt !== null) found.push({ at: startedAt, title: "Started", tone: "busy" });
  if (finishedAt !== null) {
    const note = outcome?.error ?? (outcome?.responseStatus == null ? null : `answered ${outcome.responseStatus}`);
    found.push({
      at: finishedAt,
      title: <Status status={status} />,
      tone: toneOf(status),
      note: note === null ? null : <bdi>{note}</bdi>,
    });
  }
  return found;
}

function Attempt({
  attempt: { response, error, startedAt, finishedAt },
}: {
  readonly attempt: Call["attempts"][number];
}) {
  const said = response?.said ?? null;
  return (
    <div class="stack tight">
      {error === null ? null : (
        <p class="error-line">
          <bdi>{`${error.kind}: ${error.message}`}</bdi>
        </p>
      )}
      <p class="small soft">
        {response === null
          ? "No answer"
          : `Answered ${response.status}, ${bytesText(response.bytes)}${response.truncated ? ", cut" : ""}`}
        {finishedAt === null ? ", under way" : `, after ${duration(finishedAt - startedAt)}`}
      </p>
      {said === null ? null : (
        <>
          <JsonView value={said.headers} label="Headers of the answer" />
          {said.body === null ? null : (
            <Code text={said.base64 ? said.body : pretty(said.body)} label="Body of the answer" />
          )}
        </>
      )}
    </div>
  );
}

function RequestShown({
  request: { method, url, headers, body, base64, bodyBytes, signed },
}: {
  readonly request: Request;
}) {
  return (
    <div class="stack tight">
      <p>
        <b>{method}</b> <bdi class="mono">{url}</bdi>
      </p>
      {Object.keys(headers).length === 0 ? null : <JsonView value={headers} label="Headers" />}
      {body === null ? (
        <p class="small faint">{bodyBytes === 0 ? "No body" : `A body of ${bodyBytes} bytes`}</p>
      ) : base64 ? (
        <Code text={body} label="Body in base64" />
      ) : (
        <Code text={pretty(body)} label="Body" />
      )}
      {signed ? <p class="small soft">Signed by Standard Webhooks</p> : null}
    </div>
  );
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function Why({ id }: { readonly id: string }) {
  const { data } = useVerb("calls.explain", { id }, { topics: ["run.ended"], everyMs: 5000 });
  if (data === undefined || data.because.length === 0) return null;
  return (
    <Panel title="Why" note={data.reason}>
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

type ActionsProps = { readonly call: Call; readonly again: () => void; readonly onReveal: (call: Call) => void };

function Actions({ call: { id, status, kept }, again, onReveal }: ActionsProps) {
  const url = useUrl();
  const may = whyNot("operate");
  const admin = whyNot("admin");
  const isOpen = status === "scheduled" || status === "running";
  return (
    <>
      <Button
        icon="retry"
        whyNot={may ?? (isOpen ? "It has not ended" : undefined)}
        onPress={async () => {
          const made = await ask("calls.resend", { id });
          tell(`${made.name} is sent again`);
          url.go(`/calls/${segment(made.id)}`);
        }}
      >
        Send again
      </Button>
      <Button
        icon="close"
        whyNot={may ?? (isOpen ? undefined : "It has ended")}
        onPress={async () => {
          await ask("calls.cancel", { id });
          again();
        }}
      >
        Cancel
      </Button>
      {kept === "sealed" ? (
        <Button icon="search" whyNot={admin} onPress={async () => onReveal(await ask("calls.reveal", { id }))}>
          Reveal
        </Button>
      ) : null}
      {admin === undefined ? <CopyCurl id={id} /> : null}
    </>
  );
}

function CopyCurl({ id }: { readonly id: string }) {
  const [curl, setCurl] = useState<string | undefined>(undefined);
  return curl === undefined ? (
    <Button icon="copy" onPress={async () => setCurl((await ask("calls.curl", { id })).curl)}>
      As curl
    </Button>
  ) : (
    <CopyButton text={curl} label="Copy this call as curl">
      Copy the curl
    </CopyButton>
  );
}
