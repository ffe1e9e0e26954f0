import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Empty, Failure, Page } from "../../parts/page.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useSchema } from "../../state/use-schema.ts";
import { href, segment } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";

type Template = VerbAnswer<"templates.list">["items"][number];

export function Templates() {
  const asks = { verb: "templates.list", input: {} } as const;
  const templates = useList(asks.verb, asks.input);
  const [isMaking, setMaking] = useState(false);
  return (
    <Page
      title="Templates"
      asks={asks}
      actions={
        <Button icon="plus" kind="main" whyNot={whyNot("operate")} onPress={() => setMaking(true)}>
          New template
        </Button>
      }
    >
      {templates.error === undefined ? null : <Failure error={templates.error} onAgain={templates.again} />}
      <Table
        label="Templates"
        rows={templates.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ name }) => href(`/templates/${segment(name)}`)}
        onMore={templates.onMore}
        isReading={!templates.isKnown}
        empty={
          <Empty icon="template" title="No templates yet" snippet={snippet}>
            A template is a name with default params and a retry policy that jobs are made from.
          </Empty>
        }
      />
      {isMaking ? <MakeTemplate onClose={() => setMaking(false)} onDone={templates.again} /> : null}
    </Page>
  );
}

const snippet = `await book.templates.create("weekly-report", { job: report, params: { weeks: 1 } });`;

const columns: readonly Column<Template>[] = [
  { head: "Template", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.2fr)" },
  { head: "Job", cell: ({ job }) => <bdi>{job}</bdi>, width: "minmax(100px, 1fr)" },
  {
    head: "State",
    cell: ({ archivedAt }) => <Status status={archivedAt === null ? "active" : "archived"} />,
    width: "104px",
  },
  {
    head: "Queue",
    cell: ({ queue }) => <bdi>{queue ?? "the definition's"}</bdi>,
    width: "minmax(90px, 1fr)",
    minor: true,
  },
  { head: "Revision", cell: ({ revision }) => revision, width: "76px", align: "right", minor: true },
  { head: "Changed", cell: ({ updatedAt }) => <Time at={updatedAt} />, width: "88px" },
];

function MakeTemplate({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const [name, setName] = useState("");
  const [job, setJob] = useState("");
  const [params, setParams] = useState<FormValue>({ value: {}, problem: undefined });
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const schema = useSchema(job);
  async function make(): Promise<void> {
    try {
      await ask("templates.create", { name, job, params: params.value });
      tell(`${name} is made`, { href: href(`/templates/${segment(name)}`) });
      onDone();
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  }
  return (
    <Dialog title="New template" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <label class="field">
          <span>Name</span>
          <input type="text" required value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
        </label>
        <label class="field">
          <span>Job</span>
          <input type="text" required value={job} onInput={({ currentTarget }) => setJob(currentTarget.value)} />
        </label>
        <SchemaForm
          key={schema === null ? "" : job}
          label="Default params"
          schema={schema}
          value={params}
          onChange={setParams}
        />
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" whyNot={params.problem}>
            Make it
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
