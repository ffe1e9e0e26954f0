import { Answer, Count, Empty, Page } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Type = VerbAnswer<"records.types">["items"][number];

export function Records() {
  const asks = { verb: "records.types", input: {} } as const;
  const types = useVerb(asks.verb, asks.input, { topics: ["record.committed"] });
  return (
    <Page title="Records" asks={asks}>
      <Answer of={types}>
        {({ items }) => (
          <Table
            label="Types of records"
            rows={items}
            columns={columns}
            idOf={({ name }) => name}
            hrefOf={({ name }) => href(`/records/${segment(name)}`)}
            empty={
              <Empty icon="record" title="No records yet" snippet={snippet}>
                A record is something known, with every version kept: what it was then can be asked.
              </Empty>
            }
          />
        )}
      </Answer>
    </Page>
  );
}

const snippet = `const Order = entity("order", { schema: OrderSchema, key: "id" });

await book.records.put(Order, { id: "o-17", total: 40 });
const then = await book.records.get(Order, "o-17", { asOf: "2026-11-01T00:00:00Z" });`;

const columns: readonly Column<Type>[] = [
  { head: "Type", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.2fr)" },
  {
    head: "Kind",
    cell: ({ kind, from, to }) => (kind === "entity" ? "entity" : `relation from ${from ?? "?"} to ${to ?? "?"}`),
    width: "minmax(120px, 1.6fr)",
  },
  { head: "Records", cell: ({ records }) => <Count of={records} />, width: "100px", align: "right" },
  { head: "Schema", cell: ({ schemaVersion }) => `version ${schemaVersion}`, width: "90px", minor: true },
];
