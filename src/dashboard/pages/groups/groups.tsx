import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Meter } from "../../parts/meter.tsx";
import { Empty, Failure, Page, Tabs } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";

type Group = VerbAnswer<"groups.list">["items"][number];

const statuses = ["open", "completed", "failed", "partial", "cancelled"] as const;

export function Groups() {
  const url = useUrl();
  const status = url.get("status");
  const input = (status === undefined ? {} : { status }) as VerbInput<"groups.list">;
  const groups = useList("groups.list", input, { topics: ["run.ended", "job.created"] });
  return (
    <Page title="Groups" asks={{ verb: "groups.list", input }}>
      <Tabs
        label="State"
        current={status ?? "all"}
        tabs={["all", ...statuses].map((id) => ({ id, text: id }))}
        onChoose={(id) => url.set({ status: id === "all" ? null : id }, { push: true })}
      />
      {groups.error === undefined ? null : <Failure error={groups.error} onAgain={groups.again} />}
      <Table
        label="Groups"
        rows={groups.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/groups/${segment(id)}`)}
        onMore={groups.onMore}
        fresh={status}
        isReading={!groups.isKnown}
        empty={
          <Empty icon="group" title="No groups yet" snippet={snippet}>
            A group is jobs that belong together, one after another or side by side, with a rule for failure.
          </Empty>
        }
      />
    </Page>
  );
}

const snippet = `await book.groups.create({
  mode: "sequential",
  jobs: [job(fetchData, {}), job(clean, {}), job(report, {})],
});`;

const columns: readonly Column<Group>[] = [
  { head: "Group", cell: ({ name, id }) => <bdi>{name ?? `…${id.slice(-8)}`}</bdi>, width: "minmax(120px, 1.2fr)" },
  { head: "State", cell: ({ status }) => <Status status={status} />, width: "104px" },
  {
    head: "Progress",
    cell: ({ progress }) => (
      <Meter value={progress.completed} max={progress.total} label={`${progress.completed} of ${progress.total}`} />
    ),
    width: "minmax(130px, 1fr)",
  },
  { head: "Failed", cell: ({ progress }) => progress.failed, width: "64px", align: "right", minor: true },
  {
    head: "Runs",
    cell: ({ mode, onFailure }) => `${mode}, on failure ${onFailure}`,
    width: "minmax(130px, 1fr)",
    minor: true,
  },
  { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "88px" },
];
