// Is work flowing, what failed and why, what happens next.
import type { VerbAnswer } from "../../../client/verbs.ts";
import { runColumns } from "../runs/runs.tsx";
import { Banner } from "./banner.tsx";
import { Chart, type Mark } from "../../parts/chart.tsx";
import { Answer, bytesText, Empty, Page, Panel, Tabs } from "../../parts/page.tsx";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { duration } from "../../state/clock.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type OverviewOf = VerbAnswer<"runs.overview">;
type Group = VerbAnswer<"book.errors">["items"][number];
type Slow = VerbAnswer<"runs.slow">["items"][number];
type Fire = VerbAnswer<"schedules.list">["items"][number];
type Summary = VerbAnswer<"runs.summary">["items"][number];

const periods = [
  { id: "1h", text: "1 h" },
  { id: "24h", text: "24 h" },
  { id: "7d", text: "7 d" },
] as const;

export function Overview() {
  const url = useUrl();
  const since = url.get("since") ?? "24h";
  const asks = { verb: "runs.overview", input: { since } } as const;
  const overview = useVerb(asks.verb, asks.input, { topics: ["run.ended"] });
  const sessions = useVerb("sessions.list", { limit: 50 }, { everyMs: 15_000 });
  const marks = marksOf(sessions.data?.items ?? []);
  return (
    <Page
      title="Overview"
      asks={asks}
      actions={
        <Tabs
          label="Period"
          tabs={periods}
          current={since}
          onChoose={(id) => url.set({ since: id === "24h" ? null : id })}
        />
      }
    >
      <Banner />
      <Answer of={overview}>
        {(data) =>
          data.runs === 0 ? (
            <Empty icon="overview" title="Nothing has run yet" snippet={snippet}>
              Give the book something to do, and this page says how it goes.
            </Empty>
          ) : (
            <>
              <Tiles of={data} since={since} />
              <Charts
                of={data}
                marks={marks}
                onRange={(from, until) => url.go("/runs", { q: `since:${iso(from)} until:${iso(until)}` })}
              />
            </>
          )
        }
      </Answer>
      <div class="columns">
        <Errors since={since} />
        <NextFires />
      </div>
      <div class="columns">
        <Handlers since={since} />
        <Slowest since={since} />
      </div>
      <Latest />
    </Page>
  );
}

const snippet = `const book = await open("my.db", { use: [sendReceipt] });
await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
await book.work();`;

function iso(at: number): string {
  return new Date(at).toISOString();
}

function Tiles({
  of: { runs, errors, successRate, durationMs, buckets, sessionsRunning },
  since,
}: {
  readonly of: OverviewOf;
  readonly since: string;
}) {
  const size = useVerb("book.health", {}, { everyMs: 15_000 }).data?.size;
  const rate =
    successRate === null ? "–" : `${(successRate * 100).toFixed(successRate > 0.995 && successRate < 1 ? 2 : 1)} %`;
  return (
    <div class="tiles">
      <a class="tile" href={href("/runs", { q: `since:${since}` })}>
        <span class="tile-name">Runs</span>
        <span class="tile-value">{runs.toLocaleString("en-US")}</span>
        <Sparkline values={buckets.map((bucket) => bucket.runs)} />
      </a>
      <a class="tile" href={href("/runs", { q: `status:error since:${since}` })}>
        <span class="tile-name">Failed</span>
        <span class="tile-value">{errors.toLocaleString("en-US")}</span>
        <Sparkline values={buckets.map((bucket) => bucket.errors)} tone="bad" />
      </a>
      <a class="tile" href={href("/runs", { q: `since:${since}` })}>
        <span class="tile-name">Succeeded</span>
        <span class="tile-value">{rate}</span>
        <Sparkline values={buckets.map((bucket) => (bucket.runs === 0 ? 0 : 1 - bucket.errors / bucket.runs))} />
      </a>
      <a class="tile" href={href("/runs", { q: `since:${since}` })}>
        <span class="tile-name">Took, p95</span>
        <span class="tile-value">{durationMs === null ? "–" : duration(durationMs.p95)}</span>
        <Sparkline values={buckets.map(({ meanMs }) => meanMs ?? 0)} />
      </a>
      <a class="tile" href={href("/sessions")}>
        <span class="tile-name">Processes</span>
        <span class="tile-value">{sessionsRunning}</span>
        <span class="tile-note">attached now</span>
      </a>
      {size == null ? null : (
        <a class="tile" href={href("/settings")}>
          <span class="tile-name">Book</span>
          <span class="tile-value">{bytesText(size.bytes + size.walBytes)}</span>
          <span class="tile-note">on disk</span>
        </a>
      )}
    </div>
  );
}

type ChartsProps = {
  readonly of: OverviewOf;
  readonly marks: readonly Mark[];
  readonly onRange: (from: number, until: number) => void;
};

function Charts({ of: { buckets }, marks, onRange }: ChartsProps) {
  const times = buckets.map(({ at }) => at);
  return (
    <div class="columns">
      <Panel title="Throughput" note="drag to look into a stretch">
        <Chart
          label="Runs by outcome"
          stacked
          times={times}
          marks={marks}
          onRange={onRange}
          series={[
            { label: "succeeded", tone: "good", values: buckets.map(({ runs, errors }) => runs - errors) },
            { label: "failed", tone: "bad", values: buckets.map(({ errors }) => errors) },
          ]}
        />
      </Panel>
      <Panel title="Latency">
        <Chart
          label="How long runs took"
          times={times}
          marks={marks}
          onRange={onRange}
          format={durationShort}
          isLatency
          series={[
            { label: "mean", tone: "accent", values: buckets.map(({ meanMs }) => meanMs) },
            { label: "longest", tone: "warn", values: buckets.map(({ maxMs }) => maxMs) },
          ]}
        />
      </Panel>
    </div>
  );
}

/** On an axis a minute is a minute, without its seconds. */
function durationShort(ms: number): string {
  return duration(ms).replace(/ 0 [smh]$/, "");
}

/** A listener's deliveries are known by its name, calls by what they are. */
function nameOf(name: string): string {
  return name === "daybook.call" ? "call" : name.replace(/^listener:(sink:)?/, "");
}

function marksOf(sessions: VerbAnswer<"sessions.list">["items"]): readonly Mark[] {
  return sessions.map(({ startedAt, kind, host, pid }) => ({
    at: startedAt,
    label: kind === "remote" ? "a remote worker came" : `${host ?? "?"}:${pid ?? "?"} started`,
  }));
}

function Errors({ since }: { readonly since: string }) {
  const errors = useVerb("book.errors", { since, limit: 8 }, { topics: ["run.ended"] });
  const columns: readonly Column<Group>[] = [
    {
      head: "Error",
      cell: ({ last: { type, message } }) => <bdi title={message.slice(0, 300)}>{errorOf(type, message)}</bdi>,
      width: "minmax(130px, 3fr)",
    },
    { head: "In", cell: ({ name }) => <bdi>{nameOf(name)}</bdi>, width: "minmax(76px, 1fr)", minor: true },
    { head: "Times", cell: ({ runs }) => runs, width: "58px", align: "right" },
    { head: "Last", cell: ({ last }) => <Time at={last.at} />, width: "84px" },
  ];
  return (
    <Panel title="What fails" note="alike errors as one" flush>
      <Answer of={errors}>
        {({ items }) => (
          <Table
            label="Errors"
            rows={items}
            columns={columns}
            idOf={({ fingerprint, name }) => `${name} ${fingerprint}`}
            hrefOf={({ last }) => href(`/runs/${segment(last.runId)}`)}
            empty={<p class="empty-line">Nothing failed.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

function errorOf(type: string, message: string): string {
  return type === "Error" ? message.slice(0, 200) : `${type}: ${message.slice(0, 200)}`;
}

function NextFires() {
  const schedules = useVerb("schedules.list", { limit: 100 }, { topics: ["schedule.decided"], everyMs: 30_000 });
  const columns: readonly Column<Fire>[] = [
    { head: "Schedule", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(110px, 1.4fr)" },
    { head: "Makes", cell: ({ target }) => <bdi>{target.name}</bdi>, width: "minmax(80px, 1fr)", minor: true },
    { head: "Next", cell: ({ nextAt }) => <Time at={nextAt} />, width: "84px" },
  ];
  return (
    <Panel title="What happens next" flush>
      <Answer of={schedules}>
        {({ items }) => (
          <Table
            label="Next fires"
            restless
            rows={items
              .filter(({ nextAt, paused }) => nextAt !== null && paused === null)
              .toSorted((a, b) => (a.nextAt ?? 0) - (b.nextAt ?? 0))
              .slice(0, 8)}
            columns={columns}
            idOf={({ id }) => id}
            hrefOf={({ name }) => href(`/schedules/${segment(name)}`)}
            empty={<p class="empty-line">No schedule is due.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

function Handlers({ since }: { readonly since: string }) {
  const summary = useVerb("runs.summary", { since, limit: 100 }, { topics: ["run.ended"] });
  const columns: readonly Column<Summary>[] = [
    { head: "Handler", cell: ({ name }) => <bdi>{nameOf(name)}</bdi>, width: "minmax(110px, 1.4fr)" },
    {
      head: "Health",
      cell: ({ health }) => (health === null ? "–" : <Status status={health} />),
      width: "96px",
      minor: true,
    },
    { head: "Runs", cell: ({ runs }) => runs.toLocaleString("en-US"), width: "66px", align: "right" },
    { head: "Failed", cell: ({ errors }) => errors, width: "58px", align: "right" },
    { head: "p95", cell: ({ durationMs }) => <Took ms={durationMs?.p95} />, width: "74px", align: "right" },
  ];
  return (
    <Panel title="Handlers" note="what ran most" flush>
      <Answer of={summary}>
        {({ items }) => (
          <Table
            label="Handlers"
            rows={items.toSorted((a, b) => b.runs - a.runs).slice(0, 8)}
            columns={columns}
            idOf={({ kind, name, app }) => `${kind} ${name} ${app?.key ?? ""} ${app?.instance ?? ""}`}
            hrefOf={({ name }) => href("/runs", { q: `name:${name}` })}
            empty={<p class="empty-line">Nothing ran.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

function Slowest({ since }: { readonly since: string }) {
  const slow = useVerb("runs.slow", { since, limit: 8 }, { topics: ["run.ended"] });
  const columns: readonly Column<Slow>[] = [
    { head: "Run", cell: ({ name }) => <bdi>{nameOf(name)}</bdi>, width: "minmax(110px, 1.4fr)" },
    { head: "Outcome", cell: ({ status }) => <Status status={status} />, width: "104px", minor: true },
    { head: "Took", cell: ({ durationMs }) => <Took ms={durationMs} />, width: "76px", align: "right" },
    { head: "Ended", cell: ({ endedAt }) => <Time at={endedAt} />, width: "84px" },
  ];
  return (
    <Panel title="The slowest" flush>
      <Answer of={slow}>
        {({ items }) => (
          <Table
            label="The slowest runs"
            rows={items}
            columns={columns}
            idOf={({ id }) => id}
            hrefOf={({ id }) => href(`/runs/${segment(id)}`)}
            empty={<p class="empty-line">Nothing ran.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

function Latest() {
  const runs = useVerb("runs.list", { limit: 8 }, { topics: ["run.ended"] });
  return (
    <Panel title="What ran just now" flush actions={<a href={href("/runs")}>all runs</a>}>
      <Answer of={runs}>
        {({ items }) => (
          <Table
            label="The latest runs"
            restless
            rows={items}
            columns={runColumns}
            idOf={({ id }) => id}
            hrefOf={({ id }) => href(`/runs/${segment(id)}`)}
            empty={<p class="empty-line">Nothing ran.</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}
