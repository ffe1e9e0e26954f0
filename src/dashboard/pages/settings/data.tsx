import { Answer, bytesText, Code, KeyValues, OutOfReach, Panel } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { useVerb } from "../../state/use-verb.ts";

const allowing = `await open("shop.db", { calls: { allow: ["10.0.0.7", "stock.internal"] } });`;

export function Data() {
  const no = whyNot("read", "book");
  const info = useVerb("book.info", {}, { everyMs: 15_000, off: no !== undefined });
  if (no !== undefined) return <OutOfReach why={no} what="The book" />;
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
          <Panel title="Where calls may go" note="set in the program, not here">
            <p class="small">
              Private and local addresses are refused unless the program that opens the book allows them, for all or by
              tenant. A call that was refused says so, with the address, on its page.
            </p>
            <Code label="The allow-list" text={allowing} />
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
