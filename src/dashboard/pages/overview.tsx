import { Panel, Page, Answer } from "../parts/page.tsx";
import { Chart, type Mark } from "../parts/chart.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Time, Took } from "../parts/time.tsx";
import { duration } from "../state/clock.ts";
import { href, segment, useUrl } from "../state/url.ts";
import { useVerb } from "../state/use-verb.ts";

export function Overview() {
  const asks = { verb: "runs.overview", input: {} } as const;
  const overview = useVerb(asks.verb, asks.input, { topics: ["run.ended"] });
  return (
    <Page title="Overview" asks={asks}>
      <Answer of={overview}>{(data) => <Panel title="Throughput">{String(data.runs)}</Panel>}</Answer>
    </Page>
  );
}
