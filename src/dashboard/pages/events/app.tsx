import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Chart } from "../../parts/chart.tsx";
import { Answer, Code, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { runColumns } from "../runs/runs.tsx";

type App = VerbAnswer<"apps.show">;
type Registered = App["registered"][number];

export function AppPage() {
  const key = usePathParam("key");
  const asks = { verb: "apps.show", input: { key } } as const;
  const shown = useVerb(asks.verb, asks.input, { topics: ["run.ended"], everyMs: 10_000 });
  const overview = useVerb("runs.overview", { app: key }, { topics: ["run.ended"] });
  const runs = useList("runs.list", { app: key, limit: 20 }, { topics: ["run.ended"] });
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  return (
    <Page title={key} crumbs={[{ text: "Apps", href: href("/apps") }]} asks={asks}>
      <Answer of={shown}>
        {(app) => (
          <div class="stack">
            <Panel title="Instances">
              <div class="stack tight">
                {app.instances.map(({ index, status, error, processes, changedAt }) => (
                  <div key={index} class="row wrap instance">
                    <b>{`#${index}`}</b>
                    <Status status={status} note={error?.message} />
                    <span class="soft small">
                      since <Time at={changedAt} />
                      {processes.length === 0
                        ? null
                        : ` in ${processes.map(({ host, pid }) => `${host ?? "?"}:${pid ?? "?"}`).join(", ")}`}
                    </span>
                    {error?.at == null ? null : <code class="small">{error.at}</code>}
                  </div>
                ))}
              </div>
            </Panel>
            {overview.data === undefined || overview.data.runs === 0 ? null : (
              <Panel title="The last day">
                <Chart
                  label="Runs"
                  stacked
                  times={overview.data.buckets.map(({ at }) => at)}
                  series={[
                    {
                      label: "done",
                      tone: "good",
                      values: overview.data.buckets.map(({ runs: all, errors }) => all - errors),
                    },
                    { label: "failed", tone: "bad", values: overview.data.buckets.map(({ errors }) => errors) },
                  ]}
                />
              </Panel>
            )}
            <Panel title="Registered" note="listeners and schedules, by name" flush>
              <Table
                label="Registrations"
                rows={app.registered}
                columns={columns((id) => setChosen(chosen === id ? undefined : id))}
                idOf={({ id }) => id}
              />
            </Panel>
            {app.registered
              .filter(({ id }) => id === chosen)
              .map((each) => (
                <Registration key={each.id} of={each} />
              ))}
          </div>
        )}
      </Answer>
      <Panel title="Runs" flush>
        <Table
          label="Runs"
          rows={runs.rows}
          columns={runColumns}
          idOf={({ id }) => id}
          hrefOf={({ id }) => href(`/runs/${segment(id)}`)}
          onMore={runs.onMore}
          isReading={!runs.isKnown}
        />
      </Panel>
    </Page>
  );
}

function columns(choose: (id: string) => void): readonly Column<Registered>[] {
  return [
    {
      head: "Name",
      cell: ({ id, name }) => (
        <button type="button" class="link" onClick={() => choose(id)}>
          <bdi>{name}</bdi>
        </button>
      ),
      width: "minmax(110px, 1.2fr)",
    },
    { head: "Kind", cell: ({ kind, instance }) => `${kind} #${instance}`, width: "110px" },
    { head: "Handler", cell: ({ handler }) => <code>{handler}</code>, width: "minmax(90px, 1fr)", minor: true },
    {
      head: "Where",
      cell: ({ location }) => <code title={location}>{location.split("/").slice(-2).join("/")}</code>,
      width: "minmax(90px, 1.2fr)",
      minor: true,
    },
    {
      head: "Last run",
      cell: ({ lastRun }) => (lastRun === null ? "–" : <Status status={lastRun.status} />),
      width: "104px",
    },
    { head: "Next", cell: ({ nextAt }) => <Time at={nextAt} />, width: "88px", minor: true },
  ];
}

function Registration({ of }: { readonly of: Registered }) {
  const line = Number(/:(\d+)(?::\d+)?$/.exec(of.location)?.[1] ?? 1);
  return (
    <Panel title={of.name} note={of.location}>
      <KeyValues
        facts={[
          ["Kind", of.kind],
          ["Handler", <code key="h">{of.handler}</code>],
          ["First seen", <Time key="f" at={of.firstRegisteredAt} />],
          ["Last seen", <Time key="l" at={of.lastRegisteredAt} />],
          ["Retired", of.retiredAt === null ? null : <Time key="r" at={of.retiredAt} />],
          [
            "Settings",
            Object.keys(of.settings).length === 0 ? null : <code key="s">{JSON.stringify(of.settings)}</code>,
          ],
          [
            "Params",
            of.params === null || of.params === undefined ? null : <code key="p">{JSON.stringify(of.params)}</code>,
          ],
        ]}
      />
      {of.source === null ? null : <Code text={of.source} label="Source" first={line} />}
    </Panel>
  );
}
