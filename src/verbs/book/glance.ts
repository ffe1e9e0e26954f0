// health, find and causes: how the book is at this moment, what an id or a name stands for, and what led to what.
import type { Behind, BookHealth, Counted, CauseNode, Causes, FoundPage } from "../../index.ts";
import { droppedOf } from "../memory/tally.ts";
import { plainLine } from "../plain.ts";
import { text } from "../field.ts";
import {
  ago,
  bytes,
  copied,
  fields,
  lines,
  sentence,
  state,
  table,
  when,
  words,
  type Cell,
  type Part,
} from "../shown.ts";
import { read } from "../verb.ts";

export const glance = {
  health: read({
    words: "health",
    about: "say how the book is at this moment, and whether somebody should look",
    more: `The verdict is ok, attention (somebody should look at something) or trouble (work does not flow), and each
reason is a sentence. It costs the same beside a million jobs: nothing is counted beyond 10,000 ("over"),
and of each listener's queue only the first deliveries are looked at. It is of the tenant that the book
is seen as; the size of the book and what telemetry lost are of the whole book, and shown to nobody else.
The exit code is 0 when it is ok, and 20 when somebody should look.`,
    run: (book): Promise<BookHealth> => book.health(),
    show: healthPage,
    verdict: ({ verdict }) => (verdict === "ok" ? undefined : "found"),
  }),

  find: read({
    words: "find <text>",
    // A name may have any character in it.
    http: "GET /find",
    about: "say what an id, the beginning of one, or a name stands for",
    more: `It looks for ids of jobs, runs, events, calls, groups, dead letters, sessions and operations, for names of
templates, schedules, listeners, sinks, definitions of jobs, queues and apps, for keys of records and for
numbers of commits, of the tenant. Of an id 8 characters are enough; a name or a key must be whole. At most 20
are listed, what is meant exactly first, then the newest.`,
    input: { text: text("an id, at least 8 characters of one, a name, a key or a number", "text") },
    examples: ["find 019a3c5e", "find o-17"],
    run: (book, { text: wanted }): Promise<FoundPage> => book.find(wanted),
    show: ({ items, more }, { text: wanted }) => [
      table(
        items,
        {
          kind: ({ kind }) => kind,
          id: ({ id, type }) => copied(type === null ? id : `${type} ${id}`),
          title: ({ title }) => title,
          status: ({ status }) => (status === null ? null : state(status)),
          at: ({ at }) => when(at),
        },
        { none: `Nothing is called "${wanted}", and no id begins so.`, least: ["title", "at"] },
      ),
      ...(more ? ["There may be more: give more of the id."] : []),
    ],
  }),

  causes: read({
    words: "causes <id>",
    about: "show what caused a job, a run, an event, a call or a commit, and what it caused",
    more: `What was made while a run was executing was caused by it: jobs, events, calls and commits. Besides, an event is
delivered to listeners, a job is retried, a schedule fires jobs, and events are replayed and calls resent. It is
shown from the first cause on, the asked one marked, and 200 of these at most: its causes and what it caused
come before the rest.`,
    input: { id: text("the id of a job, run, event or call, or the number of a commit", "id") },
    run: (book, { id }): Promise<Causes> => book.causes(id),
    show: ({ asked, root, nodes, edges, cut }) => [
      lines(treeLines({ asked, root, nodes, edges }).join("\n")),
      ...(cut ? ["There is more than this."] : []),
    ],
  }),
};

function treeLines({ asked, root, nodes, edges }: Omit<Causes, "cut">): string[] {
  const known = new Map(nodes.map((node) => [node.key, node]));
  const below = Map.groupBy(edges, ({ from }) => from);
  const shown: string[] = [];
  const draw = (key: string, how: string, depth: number): void => {
    const node = known.get(key);
    if (node === undefined) return;
    known.delete(key);
    shown.push(`${"  ".repeat(depth)}${key === asked ? "» " : ""}${how}${nodeLine(node)}`);
    for (const { to, kind } of below.get(key) ?? []) draw(to, kind === "caused" ? "" : `${kind}: `, depth + 1);
  };
  draw(root, "", 0);
  return shown;
}

function nodeLine({ kind, name, status, id }: CauseNode): string {
  const what = [kind, plainLine(name), ...(status === null ? [] : [`(${status})`])].join(" ");
  return name === id ? what : `${what} ${plainLine(id)}`;
}

function healthPage(found: BookHealth): (string | Part)[] {
  const { verdict, reasons, jobs, runs, schedules, calls, paused, size, dropped } = found;
  const { oldestDue: due } = jobs;
  const { next } = schedules;
  const held = [...paused.queues.map(({ name }) => `queue ${name}`), ...paused.names.map(({ name }) => name)];
  const lost = droppedOf(dropped);
  return [
    sentence(state(verdict)),
    ...reasons.map(({ because }) => because),
    fields({
      jobs: `${upTo(jobs.waiting)} waiting, ${upTo(jobs.queued)} queued, ${upTo(jobs.running)} running`,
      "oldest due": due === null ? null : words(due.name, ago(due.dueAt), due.id),
      "runs in 24 h": `${runs.ended}, ${runs.failed} failed`,
      "next schedule": next === null ? null : words(next.name, ago(next.nextAt)),
      "late schedules": none(schedules.late),
      "dead letters": none(found.deadLetters),
      calls: `${upTo(calls.scheduled)} scheduled, ${upTo(calls.running)} running, ${upTo(calls.failed)} failed in 24 h`,
      "listeners behind": behindCell(found.listeners.items),
      "sinks behind": behindCell(found.sinks.items),
      sessions: `${found.sessionsRunning} running`,
      paused: held.length === 0 ? null : held.join(", "),
      size: size === null ? null : `${bytes(size.bytes)}, and ${bytes(size.walBytes)} in the write-ahead log`,
      dropped: lost === "" ? null : lost,
    }),
  ];
}

function upTo({ count, more }: Counted): string {
  return more ? `over ${count}` : String(count);
}

function none(counted: Counted): string | null {
  return counted.count === 0 ? null : upTo(counted);
}

function behindCell(items: readonly Behind[]): Cell {
  const each = items
    .slice(0, 3)
    .map((one) => `${one.name} (${upTo({ ...one, count: one.events })}, ${Math.round(one.seconds)} s)`);
  return each.length === 0 ? null : each.join(", ");
}
