import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Failure, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { useList } from "../../state/use-list.ts";

type Operation = VerbAnswer<"operations.list">["items"][number];

export function Operations() {
  const operations = useList("operations.list", {}, { everyMs: 2000 });
  const columns: readonly Column<Operation>[] = [
    { head: "Operation", cell: ({ verb }) => verb, width: "minmax(130px, 1fr)" },
    {
      head: "State",
      cell: ({ status, error }) => <Status status={status} note={error?.message} />,
      width: "minmax(110px, 1.4fr)",
    },
    {
      head: "Done",
      cell: ({ done, total }) => (total === null ? done : `${done} of ${total}`),
      width: "110px",
      align: "right",
    },
    { head: "By", cell: ({ by }) => <bdi>{by?.name ?? "–"}</bdi>, width: "minmax(80px, 0.8fr)", minor: true },
    { head: "Began", cell: ({ startedAt }) => <Time at={startedAt} />, width: "92px" },
    {
      head: "Actions",
      cell: ({ id, status }) => (
        <Button
          whyNot={whyNot("operate") ?? (status === "running" ? undefined : "It has ended")}
          onPress={async () => {
            await ask("operations.cancel", { id });
            operations.again();
          }}
        >
          Cancel
        </Button>
      ),
      width: "90px",
      align: "right",
    },
  ];
  return (
    <Panel title="Operations" note="what takes minutes and was begun through a server" flush>
      {operations.error === undefined ? null : <Failure error={operations.error} />}
      <Table
        label="Operations"
        rows={operations.rows}
        columns={columns}
        idOf={({ id }) => id}
        onMore={operations.onMore}
        isReading={!operations.isKnown}
        empty={<p class="empty-line">None yet.</p>}
      />
    </Panel>
  );
}
