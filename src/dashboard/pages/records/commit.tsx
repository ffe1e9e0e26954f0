import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Id } from "../../parts/copy.tsx";
import { Diff } from "../../parts/diff.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { keyPath, keyText } from "./key.ts";

type Change = VerbAnswer<"commits.show">["items"][number];

export function CommitPage() {
  const id = usePathParam("id");
  const asks = { verb: "commits.show", input: { id: Number(id) } as unknown as VerbInput<"commits.show"> } as const;
  const commit = useVerb(asks.verb, asks.input);
  return (
    <Page title={`Commit ${id}`} crumbs={[{ text: "Commits", href: href("/commits") }]} asks={asks}>
      <Answer of={commit}>
        {(shown) => (
          <div class="stack">
            <Panel title="Facts">
              <KeyValues
                facts={[
                  ["When", <Time key="w" at={shown.at} whole />],
                  ["By", shown.actor],
                  ["Why", shown.reason],
                  ["Changes", String(shown.changes)],
                  [
                    "Made by run",
                    shown.cause === null ? null : (
                      <Id key="r" id={shown.cause.runId} href={href(`/runs/${shown.cause.runId}`)} />
                    ),
                  ],
                  ...Object.entries(shown.metadata).map(([name, value]) => [name, String(value)] as const),
                ]}
              />
            </Panel>
            {shown.items.map((change) => (
              <ChangeShown key={`${change.type}/${keyPath(change.key)}`} change={change} />
            ))}
            {shown.next === null ? null : <p class="faint">{`${shown.changes - shown.items.length} more changes`}</p>}
          </div>
        )}
      </Answer>
    </Page>
  );
}

function ChangeShown({ change: { type, key, kind, revision, before, value } }: { readonly change: Change }) {
  return (
    <Panel
      title={`${type} ${keyText(key)}`}
      note={`revision ${revision}`}
      actions={
        <>
          <span class="soft small">{kind}</span>
          <a class="button" href={href(`/records/${segment(type)}/${keyPath(key)}`)}>
            Its time
          </a>
        </>
      }
    >
      <Diff before={before ?? undefined} after={value ?? undefined} />
    </Panel>
  );
}
