import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, Failure, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { PauseButton, PausedNote } from "../../parts/pause.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { duration, exact } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { Backfill } from "./backfill.tsx";
import { Calendar } from "./calendar.tsx";
import { Fires } from "./fires.tsx";
import { ScheduleForm } from "./schedule-form.tsx";
import { stateOf } from "./schedules.tsx";

type Schedule = VerbAnswer<"schedules.show">;
type Decision = VerbAnswer<"schedules.decisions">["items"][number];

export function SchedulePage() {
  const name = usePathParam("name");
  const asks = { verb: "schedules.show", input: { name } } as const;
  const schedule = useVerb(asks.verb, asks.input, { topics: ["schedule.decided"], everyMs: 15_000 });
  const { data } = schedule;
  return (
    <Page
      title={name}
      crumbs={[{ text: "Schedules", href: href("/schedules") }]}
      beside={data === undefined ? null : <Status status={stateOf(data)} />}
      asks={asks}
      actions={data === undefined ? null : <Actions schedule={data} again={schedule.again} />}
    >
      <Answer of={schedule}>
        {(shown) => (
          <div class="stack">
            <PausedNote paused={shown.paused} />
            <div class="columns wide-left">
              <div class="stack">
                <Decisions name={name} zone={shown.zone} />
              </div>
              <div class="stack">
                <Panel title="When" note={shown.words}>
                  <KeyValues
                    facts={[
                      ["Expression", <code key="e">{shown.expression}</code>],
                      ["Zone", shown.zone],
                      ["Next", <Time key="n" at={shown.nextAt} zone={shown.zone} />],
                      ["Last fired", <Time key="l" at={shown.lastFiredAt} zone={shown.zone} />],
                      ["Fired", `${shown.fires} times${shown.maxFires === null ? "" : ` of ${shown.maxFires}`}`],
                      ["Failures in a row", shown.failures === 0 ? null : String(shown.failures)],
                      ["Missed slots", shown.missed],
                      ["While the job before runs", shown.overlap],
                      ["Jitter", shown.jitterMs === 0 ? null : duration(shown.jitterMs)],
                      ["Starts", shown.startsAt === null ? null : <Time key="s" at={shown.startsAt} whole />],
                      ["Ends", shown.endsAt === null ? null : <Time key="en" at={shown.endsAt} whole />],
                      ["Made by", shown.source === "code" ? "the program" : "hand"],
                      ["Makes", `${shown.target.kind} ${shown.target.name}`],
                    ]}
                  />
                </Panel>
                <Fires name={name} zone={shown.zone} />
                {shown.params === null || shown.params === undefined ? null : (
                  <Panel title="Params">
                    <JsonView value={shown.params} label="Params" />
                  </Panel>
                )}
              </div>
            </div>
          </div>
        )}
      </Answer>
    </Page>
  );
}

function Decisions({ name, zone }: { readonly name: string; readonly zone: string }) {
  const decisions = useList("schedules.decisions", { name, limit: 200 }, { topics: ["schedule.decided"] });
  const [why, setWhy] = useState<number | undefined>(undefined);
  const [square, setSquare] = useState<string | undefined>(undefined);
  const shown = decisions.rows.filter(({ at }) => exact(at, { own: zone }).startsWith(square ?? ""));
  const columns: readonly Column<Decision>[] = [
    { head: "Slot", cell: ({ at }) => <Time at={at} zone={zone} whole />, width: "168px" },
    {
      head: "Decision",
      cell: ({ kind, slots }) => <Status status={kind} note={slots > 1 ? `${slots} slots` : null} />,
      width: "minmax(110px, 1fr)",
    },
    {
      head: "Made",
      cell: ({ jobId, eventId }) =>
        jobId !== null ? (
          <Id id={jobId} href={href(`/jobs/${jobId}`)} />
        ) : eventId !== null ? (
          <Id id={eventId} href={href(`/events/${eventId}`)} />
        ) : (
          "–"
        ),
      width: "92px",
    },
    { head: "Note", cell: ({ note }) => <bdi>{note}</bdi>, width: "minmax(0, 1fr)", minor: true },
    {
      head: "Actions",
      cell: ({ at }) => (
        <Button kind="quiet" onPress={() => setWhy(at)}>
          Why?
        </Button>
      ),
      width: "64px",
      align: "right",
    },
  ];
  return (
    <>
      <Panel title="What became of its slots">
        <Calendar decisions={decisions.rows} zone={zone} chosen={square} onChoose={setSquare} />
      </Panel>
      {decisions.error === undefined ? null : <Failure error={decisions.error} onAgain={decisions.again} />}
      <Panel
        title="Decisions"
        note={square === undefined ? "each slot is decided once" : `only those of ${square}`}
        actions={
          square === undefined ? null : (
            <Button kind="quiet" icon="close" onPress={() => setSquare(undefined)}>
              Show all
            </Button>
          )
        }
        flush
      >
        <Table
          label="Decisions"
          rows={shown}
          columns={columns}
          fresh={square}
          idOf={({ at, kind }) => `${at}-${kind}`}
          onMore={square === undefined ? decisions.onMore : undefined}
          isReading={!decisions.isKnown}
          empty={<p class="empty-line">No slot has come yet.</p>}
        />
      </Panel>
      {why === undefined ? null : <Why name={name} at={why} onClose={() => setWhy(undefined)} />}
    </>
  );
}

function Why({ name, at, onClose }: { readonly name: string; readonly at: number; readonly onClose: () => void }) {
  const why = useVerb("schedules.why", { name, time: at });
  return (
    <Confirm title="Why" act="Good" onClose={onClose} onAct={async () => undefined}>
      <Answer of={why}>
        {({ because }) => (
          <ul class="because">
            {because.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </Answer>
    </Confirm>
  );
}

function Actions({ schedule, again }: { readonly schedule: Schedule; readonly again: () => void }) {
  const url = useUrl();
  const { name, source } = schedule;
  const [asked, setAsked] = useState<"edit" | "backfill" | "remove" | undefined>(undefined);
  const may = whyNot("operate");
  return (
    <>
      <Button
        icon="run"
        whyNot={may}
        onPress={async () => {
          const { jobId, eventId } = await ask("schedules.trigger", { name });
          tell(`${name} has fired`, { href: jobId === null ? href(`/events/${eventId}`) : href(`/jobs/${jobId}`) });
          again();
        }}
      >
        Run now
      </Button>
      <PauseButton
        what={`the schedule ${name}`}
        paused={schedule.paused}
        onPause={async (note) => {
          await ask("schedules.pause", { name, ...(note === undefined ? {} : { note }) });
          again();
        }}
        onResume={async () => {
          await ask("schedules.resume", { name });
          again();
        }}
      />
      <Button
        icon="edit"
        whyNot={may ?? (source === "code" ? "A program declares it: edit it there" : undefined)}
        onPress={() => setAsked("edit")}
      >
        Edit
      </Button>
      <Button icon="clock" whyNot={may} onPress={() => setAsked("backfill")}>
        Backfill
      </Button>
      <Button
        icon="trash"
        kind="danger"
        label="Remove"
        whyNot={may ?? (source === "code" ? "A program declares it: remove it there" : undefined)}
        onPress={() => setAsked("remove")}
      />
      {asked === "edit" ? (
        <ScheduleForm schedule={schedule} onClose={() => setAsked(undefined)} onDone={again} />
      ) : null}
      {asked === "backfill" ? <Backfill name={name} onClose={() => setAsked(undefined)} onDone={again} /> : null}
      {asked === "remove" ? (
        <Confirm
          title={`Remove ${name}`}
          act="Remove"
          kind="danger"
          onClose={() => setAsked(undefined)}
          onAct={async () => {
            await ask("schedules.remove", { name });
            tell(`${name} is removed`);
            url.go("/schedules");
          }}
        >
          <p>
            What it has made stays. It is{" "}
            <a href={href(`/jobs`, { q: `schedule:${segment(name)}` })}>listed by the jobs</a>.
          </p>
        </Confirm>
      ) : null}
    </>
  );
}
