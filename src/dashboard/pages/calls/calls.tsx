import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { Empty, Failure, Page, Tabs } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { parseFilter, valueOf, valuesOf, withTerm } from "../../state/filter.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { SubmitDialog } from "./submit.tsx";

type Call = VerbAnswer<"calls.list">["items"][number];
type Filter = VerbInput<"calls.list">;

const statuses = ["scheduled", "running", "succeeded", "failed", "cancelled"] as const;

const fields: readonly FilterField[] = [
  { name: "status", hint: "its state", values: statuses },
  { name: "host", hint: "where it goes: api.example.com" },
  { name: "name", hint: "what people call it" },
  { name: "tag", hint: "a tag of it" },
  { name: "correlation", hint: "what it belongs to" },
];

export function Calls() {
  const url = useUrl();
  const text = url.get("q") ?? "";
  const terms = parseFilter(text);
  const status = valuesOf(terms, "status");
  const given = {
    host: valueOf(terms, "host"),
    name: valueOf(terms, "name") ?? valueOf(terms, ""),
    tag: valueOf(terms, "tag"),
    correlationId: valueOf(terms, "correlation"),
  };
  const input = {
    ...(status.length === 0 ? {} : { status }),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  } as Filter;
  const calls = useList("calls.list", input, { topics: ["run.ended", "event.published"], everyMs: 10_000 });
  const [isMaking, setMaking] = useState(false);
  return (
    <Page
      title="Calls"
      asks={{ verb: "calls.list", input }}
      actions={
        <Button icon="plus" kind="main" whyNot={whyNot("operate")} onPress={() => setMaking(true)}>
          Submit
        </Button>
      }
    >
      <div class="stack tight">
        <FilterBar fields={fields} label="Filter calls" />
        <Tabs
          label="State"
          current={status[0] ?? "all"}
          tabs={["all", ...statuses].map((id) => ({ id, text: id }))}
          onChoose={(id) => url.set({ q: withTerm(text, "status", id === "all" ? undefined : id) }, { push: true })}
        />
      </div>
      {calls.error === undefined ? null : <Failure error={calls.error} onAgain={calls.again} />}
      <Table
        label="Calls"
        rows={calls.rows}
        columns={columns}
        fresh={text}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/calls/${segment(id)}`)}
        onMore={calls.onMore}
        isReading={!calls.isKnown}
        empty={
          <Empty
            icon="call"
            title={text === "" ? "No calls yet" : "No call matches"}
            snippet={text === "" ? snippet : ""}
          >
            A call is an HTTP request that must be made, now or later, with a log row before each attempt.
          </Empty>
        }
      />
      {isMaking ? <SubmitDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const snippet = `await tx.calls.submit({
  method: "POST",
  url: "https://stock.example/reserve",
  json: { orderId },
});`;

const columns: readonly Column<Call>[] = [
  { head: "Call", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(130px, 1.4fr)" },
  {
    head: "State",
    cell: ({ status, outcome }) => <Status status={status} note={outcomeText(outcome)} />,
    width: "minmax(120px, 1.4fr)",
  },
  {
    head: "Host",
    cell: ({ request, host }) => <bdi>{`${request.method} ${host}`}</bdi>,
    width: "minmax(110px, 1fr)",
    minor: true,
  },
  { head: "Tags", cell: ({ tags }) => <bdi>{tags.join(", ")}</bdi>, width: "90px", minor: true },
  {
    head: "Attempts",
    cell: ({ outcome, policy }) =>
      outcome === null ? `of ${policy.attempts}` : `${outcome.attempts} of ${policy.attempts}`,
    width: "76px",
    minor: true,
  },
  {
    head: "Took",
    cell: ({ outcome }) => <Took ms={outcome?.durationMs} />,
    width: "76px",
    align: "right",
    minor: true,
  },
  { head: "Due", cell: ({ dueAt }) => <Time at={dueAt} />, width: "88px" },
];

function outcomeText(outcome: Call["outcome"]): string | null {
  if (outcome === null) return null;
  const { responseStatus, errorKind, error } = outcome;
  if (errorKind === null) return responseStatus === null ? null : String(responseStatus);
  return responseStatus === null ? (error?.slice(0, 200) ?? errorKind) : `${responseStatus}`;
}
