import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Empty, Failure, Page, Panel } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { exact } from "../../state/clock.ts";
import { parseFilter } from "../../state/filter.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { brief } from "../events/events.tsx";
import { keyPath, keyText } from "./key.ts";

type Row = VerbAnswer<"records.list">["items"][number];

export function RecordType() {
  const url = useUrl();
  const type = usePathParam("type");
  const text = url.get("q") ?? "";
  const asOf = url.get("asOf");
  const types = useVerb("records.types", {});
  const known = types.data?.items.find(({ name }) => name === type);
  const filters = filtersOf(text);
  const input = {
    type,
    ...(filters.length === 0 ? {} : { filters }),
    ...(asOf === undefined ? {} : { asOf }),
  } as VerbInput<"records.list">;
  const records = useList("records.list", input, asOf === undefined ? { topics: ["record.committed"] } : {});
  const names = fieldsOf(known?.schema);
  const [moment, setMoment] = useState(asOf ?? "");
  const columns: readonly Column<Row>[] = [
    { head: "Key", cell: ({ key }) => <bdi>{keyText(key)}</bdi>, width: "minmax(110px, 1fr)" },
    ...names.slice(0, 5).map((name) => ({
      head: name,
      cell: ({ value }: Row) => <bdi>{cellText(value, name)}</bdi>,
      width: "minmax(60px, 1fr)",
      minor: true,
    })),
    ...(names.length === 0
      ? [
          {
            head: "Document",
            cell: ({ value }: Row) => <code class="faint">{brief(value)}</code>,
            width: "minmax(0, 3fr)",
          },
        ]
      : []),
    { head: "Revision", cell: ({ revision }) => revision, width: "76px", align: "right" },
  ];
  return (
    <Page title={type} crumbs={[{ text: "Records", href: href("/records") }]} asks={{ verb: "records.list", input }}>
      <div class="row wrap">
        <div class="grow">
          <FilterBar
            fields={names.map((name): FilterField => ({ name, hint: "equals; or >, <, * for contains" }))}
            label={`Filter ${type}`}
          />
        </div>
        <label class="row as-of">
          <span class="small soft">As of</span>
          <input
            type="text"
            placeholder="now"
            aria-label="As of a commit or a time"
            value={moment}
            onInput={({ currentTarget }) => setMoment(currentTarget.value)}
            onChange={({ currentTarget }) => url.set({ asOf: currentTarget.value, after: null })}
          />
        </label>
      </div>
      {asOf === undefined ? null : (
        <p class="banner attention">
          {`As it was known at ${/^\d+$/.test(asOf) ? `commit ${asOf}` : Number.isNaN(Date.parse(asOf)) ? asOf : exact(Date.parse(asOf))}. `}
          <button type="button" class="link" onClick={() => (setMoment(""), url.set({ asOf: null }))}>
            Back to now
          </button>
        </p>
      )}
      {records.error === undefined ? null : <Failure error={records.error} onAgain={records.again} />}
      <Table
        label={type}
        rows={records.rows}
        columns={columns}
        idOf={({ key }) => keyPath(key)}
        hrefOf={({ key }) => href(`/records/${segment(type)}/${keyPath(key)}`)}
        onMore={records.onMore}
        isReading={!records.isKnown}
        empty={<Empty icon="record" title={text === "" ? "None yet" : "None matches"} />}
      />
      {known?.schema === undefined || known.schema === null ? null : (
        <Panel title="Schema" note={`version ${known.schemaVersion}`}>
          <JsonView value={known.schema} label="Schema" />
        </Panel>
      )}
    </Page>
  );
}

/** `total:>50 status:paid` as the filters of the verb: `total gt 50`, `status eq "paid"`. */
function filtersOf(text: string): readonly string[] {
  return parseFilter(text)
    .filter(({ name, value }) => name !== "" && value !== "")
    .map(({ name, value }) => {
      const [, sign = "", rest = ""] = /^(>=|<=|>|<|!|\*)?(.*)$/s.exec(value) ?? [];
      const words: Readonly<Record<string, string>> = {
        ">": "gt",
        "<": "lt",
        ">=": "gte",
        "<=": "lte",
        "!": "ne",
        "*": "contains",
      };
      return `${name} ${words[sign] ?? "eq"} ${asJson(rest)}`;
    });
}

function asJson(text: string): string {
  return /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(text) ? text : JSON.stringify(text);
}

function fieldsOf(schema: unknown): readonly string[] {
  if (typeof schema !== "object" || schema === null || !("properties" in schema)) return [];
  const { properties } = schema;
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

function cellText(value: unknown, name: string): string {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  if (found === undefined || found === null) return "–";
  return typeof found === "string" ? found : brief(found);
}
