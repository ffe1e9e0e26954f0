import type { VerbAnswer } from "../../../client/verbs.ts";
import { Answer, Empty, Page } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type App = VerbAnswer<"apps.list">["items"][number];
type Row = { readonly key: string; readonly app: App; readonly instance: App["instances"][number] };

export function Apps() {
  const asks = { verb: "apps.list", input: {} } as const;
  const apps = useVerb(asks.verb, asks.input, { everyMs: 10_000 });
  return (
    <Page title="Apps" asks={asks}>
      <Answer of={apps}>
        {({ items }) => (
          <Table
            label="Apps"
            rows={items.flatMap((app) =>
              app.instances.map((instance) => ({ key: `${app.key}/${instance.index}`, app, instance })),
            )}
            columns={columns}
            idOf={({ key }) => key}
            hrefOf={({ app }) => href(`/apps/${segment(app.key)}`)}
            empty={
              <Empty icon="app" title="No apps yet" snippet={snippet}>
                An app is a bundle of listeners and schedules with one or more configured instances.
              </Empty>
            }
          />
        )}
      </Answer>
    </Page>
  );
}

const snippet = `export const lights = app("lights", {
  instances: [{ room: "kitchen" }],
  setup(home, { room }) {
    home.on(\`motion.\${room}\`, { name: "on" }, () => switchOn(room));
  },
});`;

const columns: readonly Column<Row>[] = [
  { head: "App", cell: ({ app }) => <bdi>{app.key}</bdi>, width: "minmax(110px, 1fr)" },
  { head: "Instance", cell: ({ instance }) => `#${instance.index}`, width: "80px" },
  {
    head: "State",
    cell: ({ instance }) => <Status status={instance.status} note={instance.error?.message} />,
    width: "minmax(110px, 1.5fr)",
  },
  { head: "Processes", cell: ({ instance }) => instance.processes.length, width: "84px", align: "right", minor: true },
  { head: "Listeners", cell: ({ app }) => app.registrations.listeners, width: "80px", align: "right", minor: true },
  { head: "Schedules", cell: ({ app }) => app.registrations.schedules, width: "84px", align: "right", minor: true },
  { head: "Since", cell: ({ instance }) => <Time at={instance.changedAt} />, width: "88px" },
];
