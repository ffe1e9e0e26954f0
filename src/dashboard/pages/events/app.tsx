import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Chart } from "../../parts/chart.tsx";
import { Answer, Code, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { duration } from "../../state/clock.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { runColumns } from "../runs/runs.tsx";

type App = VerbAnswer<"apps.show">;
type Registered = App["registered"][number];
type Tally = VerbAnswer<"runs.summary">["items"][number];

export function AppPage() {
  const key = usePathParam("key");
  const asks = { verb: "apps.show", input: { key } } as const;
  const shown = useVerb(asks.verb, asks.input, { topics: ["run.ended"], everyMs: 10_000 });
  const overview = useVerb("runs.overview", { app: key }, { topics: ["run.ended"] });
  const runs = useList("runs.list", { app: key, limit: 20 }, { topics: ["run.ended"] });
  const summaries = useList("runs.summary", { app: key, limit: 200 }, { topics: ["run.ended"] });
  const tallyOf = ({ name, kind, instance }: Registered): Tally | undefined =>
    summaries.rows.find((each) => each.name === name && each.kind === kind && each.app?.instance === instance);
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
                columns={columns((id) => setChosen(chosen === id ? undefined : id), chosen, tallyOf)}
                idOf={({ id }) => id}
              />
            </Panel>
            {app.registered
              .filter(({ id }) => id === chosen)
              .map((each) => (
                <Registration key={each.id} of={each} app={key} tally={tallyOf(each)} />
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

function columns(
  choose: (id: string) => void,
  chosen: string | undefined,
  tallyOf: (of: Registered) => Tally | undefined,
): readonly Column<Registered>[] {
  return [
    {
      head: "Name",
      cell: ({ id, name }) => (
        <button type="button" class="link" aria-expanded={id === chosen} onClick={() => choose(id)}>
          <bdi>{name}</bdi>
        </button>
      ),
      width: "minmax(110px, 1.2fr)",
    },
    { head: "Kind", cell: ({ kind, instance }) => `${kind} #${instance}`, width: "110px" },
    {
      head: "Runs",
      cell: (each) => (tallyOf(each)?.runs ?? 0).toLocaleString("en-US"),
      width: "60px",
      align: "right",
      minor: true,
    },
    {
      head: "Failed",
      cell: (each) => {
        const { runs = 0, errors = 0 } = tallyOf(each) ?? {};
        return errors === 0 ? <span class="faint">–</span> : <b class="bad-text">{shareText(errors / runs)}</b>;
      },
      width: "64px",
      align: "right",
      minor: true,
    },
    {
      head: "p50, p95",
      cell: (each) => {
        const took = tallyOf(each)?.durationMs ?? null;
        return took === null ? <span class="faint">–</span> : `${duration(took.p50)}, ${duration(took.p95)}`;
      },
      width: "130px",
      align: "right",
      minor: true,
    },
    {
      head: "Where",
      cell: ({ location }) => <code title={location}>{location.split("/").slice(-2).join("/")}</code>,
      width: "minmax(80px, 1fr)",
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

function shareText(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

type RegistrationProps = { readonly of: Registered; readonly app: string; readonly tally: Tally | undefined };

/** What a registration says of itself in the words of its definition; what is not set is left out. */
function Registration({ of, app, tally }: RegistrationProps) {
  const overview = useVerb("runs.overview", { app, name: of.name }, { topics: ["run.ended"] });
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
          ["Runs, the last day", tally === undefined ? null : tally.runs.toLocaleString("en-US")],
          [
            "Failed",
            tally === undefined || tally.errors === 0
              ? null
              : `${tally.errors} (${shareText(tally.errors / tally.runs)})`,
          ],
          [
            "p50, p95",
            tally?.durationMs == null ? null : `${duration(tally.durationMs.p50)}, ${duration(tally.durationMs.p95)}`,
          ],
          ["Last error", tally?.lastError == null ? null : <bdi key="e">{tally.lastError.message}</bdi>],
          ...settingsOf(of.settings),
          [
            "Params",
            of.params === null || of.params === undefined ? null : <code key="p">{JSON.stringify(of.params)}</code>,
          ],
        ]}
      />
      {overview.data === undefined || overview.data.runs === 0 ? null : (
        <div class="registration-line">
          <span class="small soft">Runs of this name, the last day</span>
          <Sparkline values={overview.data.buckets.map(({ runs }) => runs)} />
        </div>
      )}
      {of.source === null ? null : <Code text={of.source} label="Source" first={line} />}
    </Panel>
  );
}

const settingNames: Readonly<Record<string, string>> = {
  topic: "Hears",
  where: "Where",
  debounceMs: "Debounce",
  throttleMs: "Throttle",
  forMs: "Must hold for",
  timeoutMs: "Timeout",
};

/** "debounceMs: 120000" as Debounce 2 m 0 s. What is off or not set says nothing. */
function settingsOf(settings: Registered["settings"]): readonly (readonly [string, string])[] {
  return Object.entries(settings)
    .filter(([, value]) => value !== null && value !== false && value !== undefined)
    .map(([name, value]) => [
      settingNames[name] ?? name.charAt(0).toUpperCase() + name.slice(1),
      name.endsWith("Ms") && typeof value === "number"
        ? duration(value)
        : typeof value === "string"
          ? value
          : JSON.stringify(value),
    ]);
}
