import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Chart } from "../../parts/chart.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { PauseButton, PausedNote } from "../../parts/pause.tsx";
import { Status } from "../../parts/status.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { runColumns } from "../runs/runs.tsx";
import { lagText } from "./listeners.tsx";

type Listener = VerbAnswer<"listeners.show">;

export function ListenerPage() {
  const name = usePathParam("name");
  const asks = { verb: "listeners.show", input: { name } } as const;
  const listener = useVerb(asks.verb, asks.input, { topics: ["event.published", "run.ended"], everyMs: 10_000 });
  const overview = useVerb("runs.overview", { name: `listener:${name}` }, { topics: ["run.ended"] });
  const runs = useList("runs.list", { name: `listener:${name}`, limit: 20 }, { topics: ["run.ended"] });
  const { data } = listener;
  return (
    <Page
      title={name}
      crumbs={[{ text: "Listeners", href: href("/listeners") }]}
      beside={
        data === undefined ? null : (
          <Status
            status={data.paused !== null ? "paused" : data.hosted ? data.state : "waiting"}
            note={data.hosted ? null : "for a host"}
          />
        )
      }
      asks={asks}
      actions={data === undefined ? null : <Actions listener={data} again={listener.again} />}
    >
      <Answer of={listener}>
        {(shown) => (
          <div class="stack">
            <PausedNote paused={shown.paused} />
            <Panel title="Facts">
              <KeyValues
                facts={[
                  ["Hears", shown.topics.join(", ")],
                  ["Where", shown.where],
                  ["Lag", lagText(shown.lag)],
                  [
                    "Dead letters",
                    <a key="d" href={href("/dead-letters", { q: `listener:${name}` })}>
                      {shown.deadLetters}
                    </a>,
                  ],
                  ["Order", shown.ordered ? "by key" : "none"],
                  ["Attempts", String(shown.attempts)],
                  [
                    "Queue",
                    <a key="q" href={href(`/queues/${segment(shown.queue)}`)}>
                      {shown.queue}
                    </a>,
                  ],
                  ["Began", shown.startedFrom],
                  ["Registered", <Time key="r" at={shown.registeredAt} />],
                  ["For", shown.forAllTenants ? "all tenants" : "this tenant"],
                ]}
              />
            </Panel>
          </div>
        )}
      </Answer>
      {overview.data === undefined || overview.data.runs === 0 ? null : (
        <Panel title="The last day">
          <Chart
            label="Deliveries"
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

function Actions({ listener, again }: { readonly listener: Listener; readonly again: () => void }) {
  const { name, paused } = listener;
  const [asked, setAsked] = useState<"rewind" | "skip" | undefined>(undefined);
  const may = whyNot("operate");
  return (
    <>
      <PauseButton
        what={`the listener ${name}`}
        paused={paused}
        onPause={async (note) => {
          await ask("listeners.pause", { name, ...(note === undefined ? {} : { note }) });
          again();
        }}
        onResume={async () => {
          await ask("listeners.resume", { name });
          again();
        }}
      />
      <Button icon="retry" whyNot={may} onPress={() => setAsked("rewind")}>
        Rewind
      </Button>
      <Button icon="skip" whyNot={may} onPress={() => setAsked("skip")}>
        Skip
      </Button>
      {asked === undefined ? null : (
        <Position verb={asked} name={name} onClose={() => setAsked(undefined)} onDone={again} />
      )}
    </>
  );
}

type PositionProps = {
  readonly verb: "rewind" | "skip";
  readonly name: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

function Position({ verb, name, onClose, onDone }: PositionProps) {
  const whole = verb === "rewind" ? "beginning" : "now";
  const [time, setTime] = useState("");
  return (
    <Confirm
      title={verb === "rewind" ? `Set ${name} back` : `Let ${name} skip`}
      act={verb === "rewind" ? "Set it back" : "Skip"}
      kind={verb === "skip" ? "danger" : "main"}
      onClose={onClose}
      onAct={async () => {
        const to = time === "" ? { to: whole } : { time: new Date(time).toISOString() };
        if (verb === "rewind") await ask("listeners.rewind", { name, ...to } as VerbInput<"listeners.rewind">);
        else {
          const { skipped } = await ask("listeners.skip", { name, ...to } as VerbInput<"listeners.skip">);
          tell(`${name} skips ${skipped}`);
        }
        onDone();
      }}
    >
      <p>
        {verb === "rewind"
          ? "It hears again what it has heard since then."
          : "It will not hear what waits for it until then."}
      </p>
      <label class="field">
        <span>{`To this moment; without one, ${verb === "rewind" ? "to the beginning of what is kept" : "to now"}`}</span>
        <input type="datetime-local" value={time} onInput={({ currentTarget }) => setTime(currentTarget.value)} />
      </label>
    </Confirm>
  );
}
