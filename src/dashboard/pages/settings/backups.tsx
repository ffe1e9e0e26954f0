import { Button } from "../../parts/button.tsx";
import { Answer, bytesText, Panel } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useVerb } from "../../state/use-verb.ts";

export function Backups() {
  const no = whyNot("admin", "book");
  const backups = useVerb("backups.list", {}, { off: no !== undefined });
  return (
    <Panel
      title="Backups"
      note="checked copies in the book's own folder"
      flush
      actions={
        <Button
          icon="plus"
          kind="main"
          whyNot={no}
          onPress={async () => {
            const made = await ask("backups.create", {});
            tell(`${made.name}: ${bytesText(made.bytes)}`);
            backups.again();
          }}
        >
          Back up now
        </Button>
      }
    >
      {no === undefined ? (
        <Answer of={backups}>
          {({ items }) => (
            <Table
              label="Backups"
              rows={items}
              columns={[
                { head: "File", cell: ({ name }) => <code>{name}</code> },
                { head: "Size", cell: ({ bytes }) => bytesText(bytes), width: "100px", align: "right" },
                { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "110px" },
              ]}
              idOf={({ name }) => name}
              empty={<p class="empty-line">No backup was made here yet.</p>}
            />
          )}
        </Answer>
      ) : (
        <p class="empty-line">{no}</p>
      )}
    </Panel>
  );
}
