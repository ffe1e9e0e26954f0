import { Answer, bytesText, KeyValues, Panel } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useVerb } from "../../state/use-verb.ts";

export function Data() {
  const info = useVerb("book.info", {}, { everyMs: 15_000 });
  return (
    <Answer of={info}>
      {(book) => (
        <div class="stack">
          <Panel title="The book">
            <KeyValues
              facts={[
                ["Where", <code key="w">{book.location}</code>],
                ["Engine", book.engine],
                ["Size", bytesText(book.bytes)],
                ["Log not yet merged", book.walBytes === 0 ? null : bytesText(book.walBytes)],
                ["Schema", `version ${book.schemaVersion}`],
                ["Zone", book.zone],
                ["Sessions running", String(book.sessionsRunning)],
              ]}
            />
          </Panel>
          <Panel title="Migrations" flush>
            <Table
              label="Migrations"
              rows={book.migrations.toReversed().slice(0, 10)}
              columns={[
                { head: "Number", cell: ({ number }) => number, width: "80px" },
                { head: "Name", cell: ({ name }) => name },
                { head: "Applied", cell: ({ appliedAt }) => <Time at={appliedAt} />, width: "100px" },
              ]}
              idOf={({ number }) => String(number)}
            />
          </Panel>
        </div>
      )}
    </Answer>
  );
}
