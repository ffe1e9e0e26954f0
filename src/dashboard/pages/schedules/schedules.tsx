import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failure, Page } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { href, segment } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { ScheduleForm } from "./schedule-form.tsx";

type Schedule = VerbAnswer<"schedules.list">["items"][number];

export function Schedules() {
  const asks = { verb: "schedules.list", input: {} } as const;
  const schedules = useList(asks.verb, asks.input, { topics: ["schedule.decided"], everyMs: 15_000 });
  const [isMaking, setMaking] = useState(false);
  return (
    <Page
      title="Schedules"
      asks={asks}
      actions={
        <Button icon="plus" kind="main" whyNot={whyNot("operate")} onPress={() => setMaking(true)}>
          New schedule
        </Button>
      }
    >
      {schedules.error === undefined ? null : <Failure error={schedules.error} onAgain={schedules.again} />}
      <Table
        label="Schedules"
        rows={schedules.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ name }) => href(`/schedules/${segment(name)}`)}
        onMore={schedules.onMore}
        isReading={!schedules.isKnown}
        empty={
          <Empty icon="schedule" title="No schedules yet" snippet={snippet}>
            A schedule makes a job or says an event at the moments of a clock, each decided once.
          </Empty>
        }
      />
      {isMaking ? <ScheduleForm onClose={() => setMaking(false)} onDone={schedules.again} /> : null}
    </Page>
  );
}

const snippet = `const everyMorning = schedule("every-morning", {
  cron: "0 7 * * *",
  zone: "Europe/Oslo",
  job: sumOrders,
});`;

const columns: readonly Column<Schedule>[] = [
  { head: "Schedule", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(130px, 1.3fr)" },
  { head: "When", cell: ({ words }) => words, width: "minmax(130px, 1.6fr)", minor: true },
  {
    head: "Makes",
    cell: ({ target }) => <bdi>{`${target.kind === "event" ? "event" : target.kind} ${target.name}`}</bdi>,
    width: "minmax(110px, 1.2fr)",
    minor: true,
  },
  {
    head: "State",
    cell: (each) => <Status status={stateOf(each)} note={each.paused?.note} />,
    width: "minmax(96px, 1fr)",
  },
  { head: "Last fired", cell: ({ lastFiredAt }) => <Time at={lastFiredAt} />, width: "92px", minor: true },
  { head: "Next", cell: ({ nextAt, zone }) => <Time at={nextAt} zone={zone} />, width: "92px" },
  { head: "Fires", cell: ({ fires }) => fires.toLocaleString("en-US"), width: "70px", align: "right", minor: true },
];

export function stateOf({ paused, held, failures, nextAt }: Schedule): string {
  if (paused !== null) return "paused";
  if (held) return "held";
  if (nextAt === null) return "done";
  return failures > 0 ? "attention" : "active";
}
