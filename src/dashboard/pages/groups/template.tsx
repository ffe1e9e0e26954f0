import { useState } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { duration } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";
import { href, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { EnqueueDialog } from "../jobs/enqueue.tsx";

export function TemplatePage() {
  const name = usePathParam("name");
  const asks = { verb: "templates.show", input: { name } } as const;
  const template = useVerb(asks.verb, asks.input);
  const [isMaking, setMaking] = useState(false);
  const { data } = template;
  const isArchived = data?.archivedAt != null;
  return (
    <Page
      title={name}
      crumbs={[{ text: "Templates", href: href("/templates") }]}
      beside={data === undefined ? null : <Status status={isArchived ? "archived" : "active"} />}
      asks={asks}
      actions={
        <>
          <Button
            icon="run"
            whyNot={whyNot("operate") ?? (isArchived ? "It is archived" : undefined)}
            onPress={() => setMaking(true)}
          >
            Make a job
          </Button>
          <Button
            whyNot={whyNot("operate")}
            onPress={async () => {
              await ask(isArchived ? "templates.restore" : "templates.archive", { name });
              tell(isArchived ? `${name} makes jobs again` : `${name} makes no new jobs`);
              template.again();
            }}
          >
            {isArchived ? "Restore" : "Archive"}
          </Button>
        </>
      }
    >
      <Answer of={template}>
        {(shown) => (
          <div class="stack">
            <Panel title="Facts">
              <KeyValues
                facts={[
                  ["Job", shown.job],
                  ["Queue", shown.queue],
                  ["Priority", shown.priority === null ? null : String(shown.priority)],
                  ["Attempts", shown.attempts === null ? null : String(shown.attempts)],
                  ["Timeout", shown.timeoutMs === null ? null : duration(shown.timeoutMs)],
                  ["Changed", <Time key="c" at={shown.updatedAt} />],
                  [
                    "Its jobs",
                    <a key="j" href={href("/jobs", { q: `template:${name}` })}>
                      list them
                    </a>,
                  ],
                ]}
              />
            </Panel>
            <Panel title="Default params">
              <JsonView value={shown.params} label="Params" />
            </Panel>
          </div>
        )}
      </Answer>
      {isMaking ? <EnqueueDialog begun={{ template: name }} onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}
