// What keeps a book in order: each says first what it would do.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { manyOf } from "../../parts/bulk.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Answer, Panel } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot, type AskOptions } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useVerb } from "../../state/use-verb.ts";

type Told = { readonly count: number; readonly words: string };

type Task = {
  readonly title: string;
  readonly about: string;
  readonly act: string;
  readonly run: (apply: boolean, options: AskOptions) => Promise<Told>;
};

const tasks: readonly Task[] = [
  {
    title: "Recover",
    about: "Ends what processes that died left behind: runs, reservations, programs. Workers do this by themselves.",
    act: "End it",
    async run(apply, options) {
      const { lost, reservations } = await ask("book.recover", { apply }, options);
      return {
        count: lost + reservations,
        words: `${manyOf(lost, "run")} and ${manyOf(reservations, "reservation")} of sessions that have ended`,
      };
    },
  },
  {
    title: "Mend the clock's marks",
    about: "Puts right the times that a wrong clock left. Make sure first that the clock of the server is right.",
    act: "Mend it",
    async run(apply, options) {
      const { mended } = await ask("book.mend", { apply }, options);
      return {
        count: mended.reduce((sum, { count }) => sum + count, 0),
        words: mended.length === 0 ? "No wrong times" : mended.map(({ name, count }) => `${count} ${name}`).join(", "),
      };
    },
  },
  {
    title: "Seal anew",
    about: "Seals what calls sent and were answered with the first key of DAYBOOK_KEY, after a change of keys.",
    act: "Seal it",
    async run(apply, options) {
      const { requests, answers, notices, missing } = await ask("book.reseal", { apply }, options);
      const unopened = missing.map(({ keyId, count }) => `; ${count} with key ${keyId}, which the server lacks`);
      return {
        count: requests + answers + notices,
        words: `${manyOf(requests, "request")}, ${manyOf(answers, "answer")} and ${manyOf(notices, "notice")}${unopened.join("")}`,
      };
    },
  },
];

export function Upkeep() {
  return (
    <div class="stack">
      <Panel title="Upkeep" note="of the whole book; each is tried first, and changes nothing until you say so">
        <ul class="tasks">
          {tasks.map((task) => (
            <TaskShown key={task.title} task={task} />
          ))}
        </ul>
      </Panel>
      <HeldShown />
    </div>
  );
}

function TaskShown({ task: { title, about, act, run } }: { readonly task: Task }) {
  const [found, setFound] = useState<Told | undefined>(undefined);
  const [isAsking, setAsking] = useState(false);
  const no = whyNot("admin", "book");
  return (
    <li>
      <div class="grow">
        <b>{title}</b>
        <p class="soft">{about}</p>
        {found === undefined ? null : <p role="status">{`It would: ${found.words}.`}</p>}
      </div>
      <Button icon="search" whyNot={no} onPress={async () => setFound(await run(false, {}))}>
        Try
      </Button>
      <Button
        kind="danger"
        whyNot={no ?? (found === undefined ? "Try it first" : found.count === 0 ? "There is nothing to do" : undefined)}
        onPress={() => setAsking(true)}
      >
        {act}
      </Button>
      {isAsking && found !== undefined ? (
        <Confirm
          title={title}
          act={act}
          kind="danger"
          onClose={() => setAsking(false)}
          onAct={async (onProgress) => {
            const done = await run(true, { onProgress });
            tell(`${title}: ${done.words}`);
            setFound(undefined);
          }}
        >
          <p>{found.words}</p>
        </Confirm>
      ) : null}
    </li>
  );
}

/** A copy of a book runs nothing that the original may have done, until somebody releases it. */
function HeldShown() {
  const no = whyNot("read", "book");
  const held = useVerb("book.held", {}, { off: no !== undefined });
  const [asked, setAsked] = useState<"release" | "drop" | undefined>(undefined);
  return (
    <Panel title="Held" note="what a copy of a book does not do until it is released" flush>
      {no === undefined ? (
        <Answer of={held}>
          {({ jobs, schedules }) => {
            const rows = [
              ...jobs.map(({ tenant, kind, count, oldestAt }) => ({ tenant, kind: String(kind), count, oldestAt })),
              ...schedules.map(({ tenant, count }) => ({ tenant, kind: "schedules", count, oldestAt: null })),
            ];
            if (rows.length === 0) return <Line>Nothing is held: this book is no copy, or was released.</Line>;
            return (
              <>
                <Table
                  label="Held"
                  rows={rows}
                  columns={[
                    { head: "Tenant", cell: ({ tenant }) => <bdi>{tenant}</bdi> },
                    { head: "What", cell: ({ kind }) => kind.replaceAll("_", " ") },
                    { head: "Held", cell: ({ count }) => count, width: "90px", align: "right" },
                    { head: "Oldest", cell: ({ oldestAt }) => <Time at={oldestAt} />, width: "110px" },
                  ]}
                  idOf={({ tenant, kind }) => `${tenant} ${kind}`}
                />
                <footer class="row end table-more">
                  <Button whyNot={whyNot("admin", "book")} onPress={() => setAsked("release")}>
                    Release all
                  </Button>
                  <Button kind="danger" whyNot={whyNot("admin", "book")} onPress={() => setAsked("drop")}>
                    Drop the jobs
                  </Button>
                </footer>
              </>
            );
          }}
        </Answer>
      ) : (
        <Line>{no}</Line>
      )}
      {asked === undefined ? null : (
        <Confirm
          title={asked === "drop" ? "Drop what is held" : "Release what is held"}
          act={asked === "drop" ? "Drop it" : "Release it"}
          kind={asked === "drop" ? "danger" : "main"}
          onClose={() => setAsked(undefined)}
          onAct={async () => {
            const input = asked === "drop" ? { drop: true, apply: true } : {};
            const { jobs } = await ask("book.release", input);
            tell(`${manyOf(jobs, "job")} ${asked === "drop" ? "dropped" : "released"}`);
            held.again();
          }}
        >
          <p>
            {asked === "drop"
              ? "The jobs are cancelled: what they would have done is not done here."
              : "Jobs whose time has come run, and schedules fire from now on. The original may do the same."}
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

function Line({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty-line">{children}</p>;
}
