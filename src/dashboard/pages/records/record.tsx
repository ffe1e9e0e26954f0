import { useEffect, useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Diff } from "../../parts/diff.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, Failure, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { exact } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { keyText, type Key } from "./key.ts";
import { Related } from "./related.tsx";
import { Slider, type Mark } from "./slider.tsx";
import { DeleteRecord, EditRecord, Reason } from "./write.tsx";

type Version = VerbAnswer<"records.history">["items"][number];

/** Each version of one record, the newest first, with a slider through its time. */
export function RecordPage() {
  const url = useUrl();
  const type = usePathParam("type");
  const parts = [usePathParam("key"), usePathParam("to"), usePathParam("instance")].filter((part) => part !== "");
  const [from = "", to, instance] = parts;
  const key: Key = to === undefined ? from : { from, to, ...(instance === undefined ? {} : { instance }) };
  const place = { type, key: to === undefined ? [from] : parts } as unknown as Pick<
    VerbInput<"records.history">,
    "type" | "key"
  >;
  const history = useList("records.history", { ...place, limit: 200 }, { topics: ["record.committed"] });
  const blame = useVerb("records.blame", place, { topics: ["record.committed"] });
  // The oldest come first, so what it is now is known when all are read.
  useEffect(() => {
    if (history.rows.length < versionsMax) history.onMore?.();
  }, [history.rows.length]);
  const versions = history.rows.toSorted((a, b) => b.commit - a.commit);
  const types = useVerb("records.types", {});
  const known = types.data?.items.find(({ name }) => name === type);
  const [isEditing, setEditing] = useState(false);
  const chosen = Math.max(
    0,
    versions.findIndex(({ commit }) => String(commit) === url.get("at")),
  );
  const shown = versions[chosen];
  const compared = url.get("with");
  const before =
    compared === undefined ? versions[chosen + 1] : versions.find(({ commit }) => String(commit) === compared);

  return (
    <Page
      title={keyText(key)}
      crumbs={[
        { text: "Records", href: href("/records") },
        { text: type, href: href(`/records/${segment(type)}`) },
      ]}
      asks={{ verb: "records.history", input: place }}
      actions={
        shown === undefined || known === undefined ? null : (
          <>
            {chosen === 0 && shown.kind !== "deleted" ? (
              <>
                <Button icon="edit" whyNot={whyNot("operate")} onPress={() => setEditing(true)}>
                  Edit
                </Button>
                <DeleteRecord type={known} recordKey={key} onDone={history.again} />
              </>
            ) : null}
            {shown.kind !== "deleted" && chosen > 0 ? (
              <Restore place={place} version={shown} again={history.again} />
            ) : null}
          </>
        )
      }
    >
      {history.error === undefined ? null : <Failure error={history.error} onAgain={history.again} />}
      {shown === undefined ? null : (
        <>
          <Panel title="Its time" note={`${versions.length}${history.onMore === undefined ? "" : " or more"} versions`}>
            <Slider
              label="Version"
              marks={versions.map(markOf)}
              chosen={chosen}
              compared={before === undefined ? undefined : versions.indexOf(before)}
              onChoose={(at) => url.set({ at: at === 0 ? null : (versions[at]?.commit ?? null), with: null })}
            />
          </Panel>
          <div class="columns">
            <Panel
              title={chosen === 0 ? "As it is" : `As it was from ${exact(shown.at)}`}
              note={`revision ${shown.revision}`}
            >
              {shown.kind === "deleted" ? (
                <p class="empty-line">It was deleted.</p>
              ) : (
                <JsonView value={shown.value} label="Document" />
              )}
            </Panel>
            <Panel
              title="What changed"
              note={before === undefined ? "its first version" : `since ${exact(before.at)}`}
              actions={
                <label class="switch row compare">
                  <span class="small soft">beside</span>
                  <select
                    value={compared ?? ""}
                    aria-label="Compare with"
                    onChange={({ currentTarget }) => url.set({ with: currentTarget.value })}
                  >
                    <option value="">the version before</option>
                    {versions.map(({ commit, revision, at }) => (
                      <option key={commit} value={String(commit)}>{`revision ${revision}, ${exact(at)}`}</option>
                    ))}
                  </select>
                </label>
              }
            >
              <Diff before={before?.value} after={shown.value} />
              <KeyValues
                facts={[
                  [
                    "Commit",
                    <a key="c" href={href(`/commits/${shown.commit}`)}>
                      {shown.commit}
                    </a>,
                  ],
                  ["By", shown.actor],
                  ["Why", shown.reason],
                  ["When", <Time key="w" at={shown.at} whole />],
                  ["Schema", `version ${shown.schemaVersion}`],
                ]}
              />
            </Panel>
          </div>
          <div class="columns">
            <Panel title="Who wrote each field">
              <Answer of={blame}>
                {({ items }) => (
                  <ul class="blame">
                    {items.map(({ field, actor, reason, at, commit }) => (
                      <li key={field}>
                        <code>{field}</code>
                        <span class="grow cut">
                          <bdi>{actor ?? "nobody named"}</bdi>
                          {reason === null ? null : (
                            <span class="faint">
                              {" · "}
                              <bdi>{reason}</bdi>
                            </span>
                          )}
                        </span>
                        <a href={href(`/commits/${commit}`)}>
                          <Time at={at} />
                        </a>
                      </li>
                    ))}
                  </ul>
                )}
              </Answer>
            </Panel>
            {typeof key === "string" ? <Related type={type} entity={key} /> : null}
          </div>
          {isEditing && known !== undefined ? (
            <EditRecord
              type={known}
              recordKey={key}
              revision={shown.revision}
              value={shown.value}
              onClose={() => setEditing(false)}
              onDone={history.again}
            />
          ) : null}
        </>
      )}
    </Page>
  );
}

const versionsMax = 5000;

function markOf({ commit, at, kind, revision, actor, reason }: Version): Mark {
  const who = actor === null ? "" : ` by ${actor}`;
  return { id: commit, at, kind, text: `revision ${revision}${who}${reason === null ? "" : `: ${reason}`}` };
}

type RestoreProps = {
  readonly place: Pick<VerbInput<"records.history">, "type" | "key">;
  readonly version: Version;
  readonly again: () => void;
};

function Restore({ place, version, again }: RestoreProps) {
  const [isAsking, setAsking] = useState(false);
  const [reason, setReason] = useState("");
  return (
    <>
      <Button icon="retry" whyNot={whyNot("operate")} onPress={() => setAsking(true)}>
        Restore this version
      </Button>
      {isAsking ? (
        <Confirm
          title="Restore"
          act="Restore"
          onClose={() => setAsking(false)}
          onAct={async () => {
            const input = { ...place, to: String(version.commit), ...(reason === "" ? {} : { reason }) };
            await ask("records.restore", input as unknown as VerbInput<"records.restore">);
            tell("It is as it was then, as a new version");
            again();
          }}
        >
          <p>{`It becomes what it was at commit ${version.commit}. Nothing is lost: this is a new version.`}</p>
          <Reason value={reason} onInput={setReason} />
        </Confirm>
      ) : null}
    </>
  );
}
