import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { manyOf } from "../../parts/bulk.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { Answer, Empty, Failure, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { parseFilter, valueOf, writeFilter } from "../../state/filter.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { brief } from "./events.tsx";
import { useVerb } from "../../state/use-verb.ts";

type Group = VerbAnswer<"deadLetters.groups">["items"][number];
type Letter = VerbAnswer<"deadLetters.list">["items"][number];
type Which = Pick<VerbInput<"deadLetters.redrive">, "listener" | "topic" | "error" | "message" | "id">;

const fields: readonly FilterField[] = [
  {
    name: "listener",
    hint: "of this listener",
    values: async () => (await ask("listeners.list", {})).items.map(({ name }) => name),
  },
  { name: "topic", hint: "of this topic" },
  {
    name: "error",
    hint: "this type of error",
    values: async () => (await ask("deadLetters.groups", {})).items.map(({ error }) => error.type),
  },
  { name: "message", hint: "and this message" },
  { name: "status", hint: "its state", values: ["dead", "redriving", "recovered", "discarded"] },
];

export function DeadLetters() {
  const url = useUrl();
  const text = url.get("q") ?? "";
  const terms = parseFilter(text);
  const found = ["listener", "topic", "error", "message", "status"].map(
    (name) => [name, valueOf(terms, name)] as const,
  );
  const input = Object.fromEntries(found.filter(([, value]) => value !== undefined)) as VerbInput<"deadLetters.list">;
  const { status: _, ...which } = input;
  const groups = useVerb("deadLetters.groups", {}, { topics: ["run.ended"] });
  const letters = useList("deadLetters.list", input, { topics: ["run.ended"] });
  const again = (): void => {
    groups.again();
    letters.again();
  };
  return (
    <Page title="Dead letters" asks={{ verb: "deadLetters.list", input }}>
      <Answer of={groups}>
        {({ items }) =>
          items.length === 0 ? null : (
            <Panel title="By error" note="with the payload of the last one" flush>
              <Table
                label="Dead letters by error"
                rows={items}
                columns={groupColumns(again)}
                idOf={groupId}
                hrefOf={(group) => href("/dead-letters", { q: filterOf(group) })}
              />
            </Panel>
          )
        }
      </Answer>
      <div class="row wrap">
        <div class="grow">
          <FilterBar fields={fields} label="Filter dead letters" />
        </div>
        <Redrive which={which} what={text} onDone={again} />
        <Discard which={which} what={text} onDone={again} />
      </div>
      {letters.error === undefined ? null : <Failure error={letters.error} onAgain={letters.again} />}
      <Table
        label="Dead letters"
        fresh={text}
        rows={letters.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/dead-letters/${segment(id)}`)}
        onMore={letters.onMore}
        isReading={!letters.isKnown}
        empty={
          <Empty icon="dead" title={text === "" ? "No dead letters" : "None matches"}>
            A delivery that failed for the last time waits here until somebody redrives or discards it.
          </Empty>
        }
      />
    </Page>
  );
}

function groupId({ listener, error }: Group): string {
  return `${listener} ${error.type} ${error.message}`;
}

function filterOf({ listener, error }: Group): string {
  return writeFilter([
    { name: "listener", value: listener },
    { name: "error", value: error.type },
    { name: "message", value: error.message },
  ]);
}

/** The payload of the last letter of a group, which leads to it. */
function Sample({ group: { listener, error } }: { readonly group: Group }) {
  const input = { listener, error: error.type, message: error.message, limit: 1 };
  const found = useVerb("deadLetters.list", input);
  const letter = found.data?.items[0];
  const shown = useVerb("deadLetters.show", { id: letter?.id ?? "" }, { off: letter === undefined });
  return letter === undefined ? (
    <span class="faint">–</span>
  ) : (
    <a class="cut" href={href(`/dead-letters/${segment(letter.id)}`)}>
      <code>{shown.data === undefined ? "…" : brief(shown.data.payload)}</code>
    </a>
  );
}

function groupColumns(again: () => void): readonly Column<Group>[] {
  return [
    { head: "Error", cell: ({ error }) => <bdi>{`${error.type}: ${error.message}`}</bdi>, width: "minmax(160px, 2fr)" },
    { head: "Listener", cell: ({ listener }) => <bdi>{listener}</bdi>, width: "minmax(90px, 0.8fr)", minor: true },
    {
      head: "Sample",
      cell: (group) => <Sample group={group} />,
      width: "minmax(100px, 1.4fr)",
      minor: true,
    },
    { head: "Count", cell: ({ count }) => count, width: "64px", align: "right" },
    { head: "First", cell: ({ firstFailedAt }) => <Time at={firstFailedAt} />, width: "86px", minor: true },
    { head: "Last", cell: ({ lastFailedAt }) => <Time at={lastFailedAt} />, width: "86px" },
    {
      head: "Actions",
      cell: ({ listener, error }) => (
        <Redrive
          which={{ listener, error: error.type, message: error.message }}
          what={`${error.type}: ${error.message}`}
          onDone={again}
        />
      ),
      width: "110px",
      align: "right",
    },
  ];
}

const columns: readonly Column<Letter>[] = [
  { head: "Event", cell: ({ topic }) => <bdi>{topic}</bdi>, width: "minmax(110px, 1fr)" },
  { head: "Listener", cell: ({ listener }) => <bdi>{listener}</bdi>, width: "minmax(90px, 0.9fr)" },
  { head: "State", cell: ({ status }) => <Status status={status} />, width: "104px" },
  {
    head: "Error",
    cell: ({ error }) => <bdi>{`${error.type}: ${error.message}`}</bdi>,
    width: "minmax(120px, 2fr)",
    minor: true,
  },
  { head: "Attempts", cell: ({ attempts }) => attempts, width: "76px", align: "right", minor: true },
  { head: "Failed", cell: ({ failedAt }) => <Time at={failedAt} />, width: "88px" },
];

type ActProps = { readonly which: Which; readonly what: string; readonly onDone: () => void };

export function Redrive({ which, what, onDone }: ActProps) {
  const [count, setCount] = useState<number | undefined>(undefined);
  return (
    <>
      <Button
        icon="retry"
        whyNot={whyNot("operate")}
        onPress={async () => setCount((await ask("deadLetters.redrive", { ...which, dryRun: true })).count)}
      >
        Redrive
      </Button>
      {count === undefined ? null : (
        <Confirm
          title="Redrive"
          act={`Redrive ${manyOf(count, "letter")}`}
          whyNot={count === 0 ? "There are none" : undefined}
          onClose={() => setCount(undefined)}
          onAct={async (onProgress) => {
            const done = await ask("deadLetters.redrive", which, { onProgress });
            tell(`${manyOf(done.count, "letter")} redriven`);
            onDone();
          }}
        >
          <p>
            {manyOf(count, "dead letter")} match <code>{what === "" ? "everything" : what}</code>. Each is delivered
            again, with attempts of its own.
          </p>
        </Confirm>
      )}
    </>
  );
}

export function Discard({ which, what, onDone }: ActProps) {
  const [count, setCount] = useState<number | undefined>(undefined);
  const [reason, setReason] = useState("");
  return (
    <>
      <Button
        icon="trash"
        kind="danger"
        whyNot={whyNot("operate")}
        onPress={async () => setCount((await ask("deadLetters.discard", which)).count)}
      >
        Discard
      </Button>
      {count === undefined ? null : (
        <Confirm
          title="Discard"
          kind="danger"
          act={`Discard ${manyOf(count, "letter")}`}
          whyNot={count === 0 ? "There are none" : undefined}
          onClose={() => setCount(undefined)}
          onAct={async (onProgress) => {
            const done = await ask(
              "deadLetters.discard",
              { ...which, apply: true, ...(reason === "" ? {} : { reason }) },
              { onProgress },
            );
            tell(`${manyOf(done.count, "letter")} discarded`);
            onDone();
          }}
        >
          <p>
            {manyOf(count, "dead letter")} match <code>{what === "" ? "everything" : what}</code>. What is discarded is
            not delivered any more.
          </p>
          <label class="field">
            <span>Why, for those who look for it later</span>
            <input type="text" value={reason} onInput={({ currentTarget }) => setReason(currentTarget.value)} />
          </label>
        </Confirm>
      )}
    </>
  );
}
