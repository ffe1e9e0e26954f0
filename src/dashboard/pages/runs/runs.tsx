import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { Empty, Failure, Page, Tabs } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { ask } from "../../state/book.ts";
import { parseFilter, valueOf, withTerm } from "../../state/filter.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";

type Run = VerbAnswer<"runs.list">["items"][number];
type Filter = VerbInput<"runs.list">;

const statuses = ["success", "error", "cancelled", "timed_out", "skipped", "lost"] as const;
const kinds = ["job", "listener", "schedule", "delivery", "call", "catch_up", "direct"] as const;

export const runFields: readonly FilterField[] = [
  { name: "status", hint: "how it ended", values: statuses },
  {
    name: "name",
    hint: "of this job, listener or schedule",
    values: async () => (await ask("runs.summary", {})).items.map(({ name }) => name),
  },
  { name: "kind", hint: "what it was for", values: kinds },
  { name: "app", hint: "of this app", values: async () => (await ask("apps.list", {})).items.map(({ key }) => key) },
  { name: "session", hint: "what this session ran" },
  { name: "since", hint: "from then on: 1h, 24h, 7d", values: ["1h", "24h", "7d"] },
];

export function readRunFilter(text: string): Filter {
  const terms = parseFilter(text);
  const fields = ["status", "name", "kind", "app", "session", "since", "until"].map(
    (name) => [name, valueOf(terms, name)] as const,
  );
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

export function Runs() {
  const url = useUrl();
  const text = url.get("q") ?? "";
  const asks = { verb: "runs.list", input: readRunFilter(text) } as const;
  const runs = useList(asks.verb, asks.input, { topics: ["run.ended"] });
  return (
    <Page title="Runs" asks={asks}>
      <div class="stack tight">
        <FilterBar fields={runFields} label="Filter runs" />
        <Tabs
          label="Outcome"
          current={valueOf(parseFilter(text), "status") ?? "all"}
          tabs={["all", ...statuses].map((id) => ({ id, text: id.replace("_", " ") }))}
          onChoose={(id) => url.set({ q: withTerm(text, "status", id === "all" ? undefined : id) }, { push: true })}
        />
      </div>
      {runs.error === undefined ? null : <Failure error={runs.error} onAgain={runs.again} />}
      <Table
        label="Runs"
        rows={runs.rows}
        columns={runColumns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/runs/${segment(id)}`)}
        onMore={runs.onMore}
        fresh={text}
        isReading={!runs.isKnown}
        empty={
          <Empty icon="run" title={text === "" ? "Nothing has run yet" : "No run matches"}>
            A run is one execution of a handler or of one HTTP request. It never changes once it has ended.
          </Empty>
        }
      />
    </Page>
  );
}

export const runColumns: readonly Column<Run>[] = [
  { head: "Run", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(130px, 1.4fr)" },
  {
    head: "Outcome",
    cell: ({ status, error }) => <Status status={status} note={error?.message.slice(0, 200)} />,
    width: "minmax(110px, 1.6fr)",
  },
  { head: "Kind", cell: ({ kind }) => kind.replace("_", " "), width: "84px", minor: true },
  {
    head: "App",
    cell: ({ app }) => (app === null ? "–" : <bdi>{`${app.key} #${app.instance}`}</bdi>),
    width: "100px",
    minor: true,
  },
  { head: "Attempt", cell: ({ attempt }) => attempt, width: "70px", align: "right", minor: true },
  { head: "Took", cell: ({ durationMs }) => <Took ms={durationMs} />, width: "76px", align: "right" },
  { head: "Ended", cell: ({ endedAt }) => <Time at={endedAt} />, width: "88px" },
];
