import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { Empty, Failure, Page } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask } from "../../state/book.ts";
import { parseFilter, valueOf } from "../../state/filter.ts";
import { href, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";

type Commit = VerbAnswer<"commits.list">["items"][number];

const fields: readonly FilterField[] = [
  { name: "actor", hint: "who made it" },
  {
    name: "type",
    hint: "what it changed",
    values: async () => (await ask("records.types", {})).items.map(({ name }) => name),
  },
  { name: "since", hint: "made from then on: 1h, 24h or a time", values: ["1h", "24h", "7d"] },
  { name: "until", hint: "made before then" },
];

export function Commits() {
  const text = useUrl().get("q") ?? "";
  const terms = parseFilter(text);
  const found = ["actor", "type", "since", "until"].map((name) => [name, valueOf(terms, name)] as const);
  const input = Object.fromEntries(found.filter(([, value]) => value !== undefined)) as VerbInput<"commits.list">;
  const commits = useList("commits.list", input, { topics: ["record.committed"] });
  return (
    <Page title="Commits" asks={{ verb: "commits.list", input }}>
      <FilterBar fields={fields} label="Filter commits" />
      {commits.error === undefined ? null : <Failure error={commits.error} onAgain={commits.again} />}
      <Table
        label="Commits"
        rows={commits.rows}
        columns={columns}
        fresh={text}
        idOf={({ id }) => String(id)}
        hrefOf={({ id }) => href(`/commits/${id}`)}
        onMore={commits.onMore}
        isReading={!commits.isKnown}
        empty={
          <Empty icon="commit" title={text === "" ? "No commits yet" : "No commit matches"}>
            A commit is one atomic change of records, with who made it and why.
          </Empty>
        }
      />
    </Page>
  );
}

const columns: readonly Column<Commit>[] = [
  { head: "Commit", cell: ({ id }) => `#${id}`, width: "90px" },
  { head: "By", cell: ({ actor }) => <bdi>{actor ?? "–"}</bdi>, width: "minmax(90px, 1fr)" },
  { head: "Why", cell: ({ reason }) => <bdi>{reason ?? "–"}</bdi>, width: "minmax(120px, 2fr)" },
  { head: "Changes", cell: ({ changes }) => changes, width: "76px", align: "right" },
  { head: "When", cell: ({ at }) => <Time at={at} />, width: "88px" },
];
