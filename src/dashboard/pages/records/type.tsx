import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Empty, Failure, Page, Panel } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { exact, serverNow } from "../../state/clock.ts";
import { writeExactly } from "../../state/exact.ts";
import { parseFilter, type Term } from "../../state/filter.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { brief } from "../events/events.tsx";
import { keyPath, keyText } from "./key.ts";
import { documentSchema, isNumber, isText, keyField, leavesOf, valueAt, type Leaf } from "./schema.ts";
import { Slider } from "./slider.tsx";
import { NewRecord } from "./write.tsx";

type Row = VerbAnswer<"records.list">["items"][number];

export function RecordType() {
  const url = useUrl();
  const type = usePathParam("type");
  const text = url.get("q") ?? "";
  const asOf = url.get("asOf");
  const types = useVerb("records.types", {});
  const known = types.data?.items.find(({ name }) => name === type);
  const leaves = leavesOf(documentSchema(known));
  const terms = parseFilter(text);
  const words = terms.flatMap(({ name, value }) => (name === "" ? [value] : [])).join(" ");
  const filters = filtersOf(terms, leaves);
  const input = {
    type,
    ...(filters.length === 0 ? {} : { filters }),
    ...(asOf === undefined ? {} : { asOf }),
  } as VerbInput<"records.list">;
  const watch = asOf === undefined ? { topics: ["record.committed"] as const } : {};
  const listed = useList("records.list", input, { ...watch, off: words !== "" });
  const found = useList("records.search", { type, words }, { off: words === "" });
  const records = words === "" ? listed : found;
  const count = useVerb("records.count", input, { ...watch, off: words !== "" });
  const [isMaking, setMaking] = useState(false);
  const isRelation = known?.kind === "relation";
  return (
    <Page
      title={type}
      crumbs={[{ text: "Records", href: href("/records") }]}
      beside={<span class="soft small">{noteOf(words === "" ? count.data?.count : undefined, known)}</span>}
      asks={{ verb: "records.list", input }}
      actions={
        <Button
          icon={isRelation ? "link" : "plus"}
          kind="main"
          whyNot={whyNot("operate") ?? (known === undefined ? "Its type is being read" : undefined)}
          onPress={() => setMaking(true)}
        >
          {isRelation ? "Link" : "New record"}
        </Button>
      }
    >
      <div class="row wrap">
        <div class="grow">
          <FilterBar fields={leaves.map((leaf) => fieldOf(type, leaf))} label={`Filter ${type}`} />
        </div>
        <AsOf asOf={asOf} />
      </div>
      {asOf === undefined ? null : <Then type={type} asOf={asOf} />}
      {words !== "" && (filters.length > 0 || asOf !== undefined) ? (
        <p class="banner attention">
          A search is about all records as they are: filters and moments are left out of it.
        </p>
      ) : null}
      {records.error === undefined ? null : <Failure error={records.error} onAgain={records.again} />}
      <Table
        label={type}
        rows={records.rows}
        columns={columnsOf(leaves, keyField(known))}
        fresh={JSON.stringify([text, asOf])}
        idOf={({ key }) => keyPath(key)}
        hrefOf={({ key }) => href(`/records/${segment(type)}/${keyPath(key)}`)}
        onMore={records.onMore}
        isReading={!records.isKnown && records.error === undefined}
        empty={
          records.error === undefined ? (
            <Empty icon="record" title={text === "" ? (asOf === undefined ? "None yet" : "None then") : "None matches"}>
              {text === "" ? null : "total:>50 compares, city:*berg looks inside, status:!paid leaves out."}
            </Empty>
          ) : null
        }
      />
      {known === undefined ? null : (
        <details class="panel fold">
          <summary>
            <h2>Schema</h2>
            <span class="soft small">{`version ${known.schemaVersion}`}</span>
          </summary>
          <JsonView value={documentSchema(known) ?? known.schema} label="Schema" />
        </details>
      )}
      {isMaking && known !== undefined ? (
        <NewRecord type={known} onClose={() => setMaking(false)} onDone={records.again} />
      ) : null}
    </Page>
  );
}

function noteOf(
  count: number | undefined,
  known: { readonly from: string | null; readonly to: string | null } | undefined,
): string {
  const ends = known?.from == null ? "" : ` from ${known.from} to ${known.to ?? "?"}`;
  return `${count === undefined ? "" : `${count.toLocaleString("en-US")} records`}${ends}`;
}

function AsOf({ asOf }: { readonly asOf: string | undefined }) {
  const url = useUrl();
  const [moment, setMoment] = useState(asOf ?? "");
  const commits = useVerb("commits.list", { limit: 1 }, { off: asOf !== undefined });
  const latest = commits.data?.items[0]?.id;
  return (
    <div class="row as-of">
      <label class="row">
        <span class="small soft">As of</span>
        <input
          key={asOf ?? ""}
          type="text"
          placeholder="now; 24h, a time, a commit"
          aria-label="As of a commit or a time"
          value={moment === "" ? (asOf ?? "") : moment}
          onInput={({ currentTarget }) => setMoment(currentTarget.value)}
          onChange={({ currentTarget }) => {
            setMoment("");
            url.set({ asOf: momentOf(currentTarget.value), after: null }, { push: true });
          }}
        />
      </label>
      <Button
        icon="clock"
        pressed={asOf !== undefined}
        whyNot={asOf === undefined && latest === undefined ? "There are no commits yet" : undefined}
        onPress={() => url.set({ asOf: asOf === undefined ? latest : null, after: null }, { push: true })}
      >
        {asOf === undefined ? "Go back in time" : "Back to now"}
      </Button>
    </div>
  );
}

/** "24h" is so long ago; a commit and a time are what they are. */
function momentOf(text: string): string {
  const [, many, unit] = /^(\d+)\s*([smhd])$/.exec(text.trim()) ?? [];
  if (many === undefined) return text.trim();
  const ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as "s" | "m" | "h" | "d"];
  return new Date(serverNow() - Number(many) * ms).toISOString();
}

/** The whole type through time: a mark for each of its last commits. */
function Then({ type, asOf }: { readonly type: string; readonly asOf: string }) {
  const url = useUrl();
  const commits = useList("commits.list", { type, limit: 200 });
  const marks = commits.rows.map(({ id, at, actor, reason }) => ({
    id,
    at,
    kind: "commit" as const,
    text: `commit ${id}${actor === null ? "" : ` by ${actor}`}${reason === null ? "" : `: ${reason}`}`,
  }));
  const isCommit = /^\d+$/.test(asOf);
  const time = Date.parse(asOf);
  const chosen = marks.findIndex(({ id, at }) => (isCommit ? id <= Number(asOf) : at <= time));
  return (
    <Panel
      title={`As it was known at ${isCommit ? `commit ${asOf}` : Number.isNaN(time) ? asOf : exact(time)}`}
      note={`a mark for each of the last ${marks.length} commits about ${type}`}
    >
      {marks.length === 0 ? null : (
        <Slider
          label="Moment"
          marks={marks}
          chosen={chosen === -1 ? marks.length - 1 : chosen}
          onChoose={(index) => url.set({ asOf: marks[index]?.id, after: null })}
        />
      )}
    </Panel>
  );
}

const columnsMax = 6;

function columnsOf(leaves: readonly Leaf[], key: string | undefined): readonly Column<Row>[] {
  // What every record has says more than what few have; what is inside of another comes last.
  const shown = leaves
    .filter(({ path }) => path !== key)
    .toSorted((a, b) => rankOf(a) - rankOf(b))
    .slice(0, columnsMax);
  return [
    { head: "Key", cell: ({ key: of }) => <bdi>{keyText(of)}</bdi>, width: "minmax(110px, 1.2fr)" },
    ...shown.map(({ path, schema }, index): Column<Row> => ({
      head: path,
      cell: ({ value }) => <bdi>{cellText(valueAt(value, path))}</bdi>,
      width: isNumber(schema) ? "minmax(70px, 0.7fr)" : "minmax(70px, 1fr)",
      ...(isNumber(schema) ? { align: "right" } : {}),
      minor: index > 1,
    })),
    ...(shown.length === 0
      ? [{ head: "Document", cell: ({ value }: Row) => <code class="faint">{brief(value)}</code>, width: "3fr" }]
      : []),
    { head: "Revision", cell: ({ revision }) => revision, width: "76px", align: "right" },
  ];
}

function rankOf({ path, isNeeded }: Leaf): number {
  return path.split(".").length + (isNeeded ? 0 : 1);
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return "–";
  return typeof value === "string" ? value : brief(value);
}

function fieldOf(type: string, { path, schema }: Leaf): FilterField {
  const words = schema.enum?.map(String);
  return {
    name: path,
    hint: isNumber(schema) ? "equals; >5, <=9" : "equals; *part, !not",
    values:
      words ??
      (async () => {
        const input = { type, numbers: ["count"], by: [path], order: "count", desc: true, limit: 12 };
        const { items } = await ask("records.aggregate", input as unknown as VerbInput<"records.aggregate">);
        return items.flatMap((each) => (each[path] === null ? [] : [plain(each[path])]));
      }),
  };
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : writeExactly(value, 0);
}

const signs: Readonly<Record<string, string>> = {
  ">": "gt",
  "<": "lt",
  ">=": "gte",
  "<=": "lte",
  "!": "ne",
  "*": "contains",
};

/** `total:>50 status:paid` as the filters of the verb: `total gt 50`, `status eq "paid"`. */
function filtersOf(terms: readonly Term[], leaves: readonly Leaf[]): readonly string[] {
  return terms
    .filter(({ name, value }) => name !== "" && value !== "")
    .map(({ name, value }) => {
      const [, sign = "", rest = ""] = /^(>=|<=|>|<|!|\*)?(.*)$/s.exec(value) ?? [];
      const schema = leaves.find(({ path }) => path === name)?.schema;
      const isWord = sign === "*" || (schema !== undefined && isText(schema));
      return `${name} ${signs[sign] ?? "eq"} ${isWord ? JSON.stringify(rest) : asJson(rest)}`;
    });
}

function asJson(text: string): string {
  return /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(text) ? text : JSON.stringify(text);
}
