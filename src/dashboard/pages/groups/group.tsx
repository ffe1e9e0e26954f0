import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { ask, whyNot } from "../../state/book.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Member = VerbAnswer<"groups.show">["members"][number];

export function GroupPage() {
  const id = usePathParam("id");
  const asks = { verb: "groups.show", input: { id } } as const;
  const group = useVerb(asks.verb, asks.input, { topics: ["run.ended", "job.created"] });
  const { data } = group;
  return (
    <Page
      title={data?.name ?? "Group"}
      crumbs={[{ text: "Groups", href: href("/groups") }]}
      beside={data === undefined ? null : <Status status={data.status} />}
      asks={asks}
      actions={
        <Button
          icon="close"
          whyNot={whyNot("operate") ?? (data?.status === "open" ? undefined : "It has ended")}
          onPress={async () => {
            await ask("groups.cancel", { id });
            group.again();
          }}
        >
          Cancel
        </Button>
      }
    >
      <Answer of={group}>
        {(shown) => (
          <div class="stack">
            <Panel title="Facts">
              <KeyValues
                facts={[
                  [
                    "Progress",
                    <Meter
                      key="p"
                      value={shown.progress.completed}
                      max={shown.progress.total}
                      label={`${shown.progress.completed} of ${shown.progress.total}`}
                    />,
                  ],
                  ["Runs", shown.mode],
                  ["When one fails", shown.onFailure],
                  ["Made", <Time key="m" at={shown.createdAt} whole />],
                  ["Ended", shown.finishedAt === null ? null : <Time key="e" at={shown.finishedAt} whole />],
                  ["Id", <Id key="i" id={shown.id} />],
                ]}
              />
            </Panel>
            <Panel title="Jobs" flush>
              <Table
                label="Jobs of the group"
                rows={shown.members}
                columns={columns}
                idOf={(member) => member.id}
                hrefOf={(member) => href(`/jobs/${segment(member.id)}`)}
              />
            </Panel>
          </div>
        )}
      </Answer>
    </Page>
  );
}

const columns: readonly Column<Member>[] = [
  { head: "Job", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.4fr)" },
  { head: "State", cell: ({ status }) => <Status status={status} />, width: "minmax(110px, 1fr)" },
  { head: "Step", cell: ({ slot }) => slot + 1, width: "60px", align: "right" },
  { head: "Attempt", cell: ({ attempt }) => attempt, width: "72px", align: "right" },
  { head: "Id", cell: ({ id }) => <Id id={id} />, width: "92px", minor: true },
];
