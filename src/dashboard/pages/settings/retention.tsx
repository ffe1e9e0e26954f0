import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Answer, bytesText, KeyValues, OutOfReach, Panel } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useVerb } from "../../state/use-verb.ts";

type Retained = VerbAnswer<"book.retain">;

const counted = ["jobs", "groups", "calls", "events", "runs", "logs", "decisions", "reservations", "rollups"] as const;

export function Retention() {
  const no = whyNot("admin");
  const retained = useVerb("book.retain", {}, { off: no !== undefined });
  const [isAsking, setAsking] = useState(false);
  if (no !== undefined) return <OutOfReach why={no} what="How long things stay" />;
  return (
    <Answer of={retained}>
      {(answer) => (
        <div class="stack">
          <Panel title="How long things stay" note="one policy, applied soon after start and hourly">
            <KeyValues
              facts={Object.entries(answer.policy).map(
                ([name, rule]) =>
                  [
                    titleOf(name),
                    name === "sizeMax" && typeof rule === "number" ? bytesText(rule) : ruleText(rule),
                  ] as const,
              )}
            />
          </Panel>
          <Panel
            title="What would leave now"
            actions={
              <Button icon="trash" kind="danger" whyNot={whyNot("admin")} onPress={() => setAsking(true)}>
                Remove it now
              </Button>
            }
          >
            <KeyValues facts={counted.map((name) => [titleOf(name), answer[name].toLocaleString("en-US")] as const)} />
          </Panel>
          {answer.evictions.length === 0 ? null : (
            <Panel title="What has left" flush>
              <Table
                label="What has left"
                rows={answer.evictions.slice(0, 50)}
                columns={[
                  { head: "When", cell: ({ at }) => <Time at={at} />, width: "100px" },
                  { head: "What", cell: ({ what }) => what },
                  { head: "Why", cell: ({ reason }) => reason },
                  { head: "Removed", cell: ({ removed }) => removed.toLocaleString("en-US"), align: "right" },
                ]}
                idOf={({ at, what }) => `${at} ${what}`}
              />
            </Panel>
          )}
          {isAsking ? (
            <Confirm
              title="Remove what is old"
              act="Remove it"
              kind="danger"
              onClose={() => setAsking(false)}
              onAct={async (onProgress) => {
                const done: Retained = await ask("book.retain", { apply: true }, { onProgress });
                tell(`${counted.reduce((sum, name) => sum + done[name], 0).toLocaleString("en-US")} rows removed`);
                retained.again();
              }}
            >
              <p>What the policy calls old leaves for good, in slices, so that others write in between.</p>
            </Confirm>
          ) : null}
        </div>
      )}
    </Answer>
  );
}

function titleOf(name: string): string {
  return name === "sizeMax" ? "Size of runs at most" : name.charAt(0).toUpperCase() + name.slice(1);
}

function ruleText(rule: unknown): string {
  if (rule === false) return "for ever";
  if (typeof rule === "number") return `${Math.round(rule / 86_400_000)} days`;
  if (typeof rule !== "string") return JSON.stringify(rule);
  const [, many, unit] = /^(\d+)([dhm])$/.exec(rule) ?? [];
  return many === undefined ? rule : `${many} ${{ d: "days", h: "hours", m: "minutes" }[unit as "d" | "h" | "m"]}`;
}
