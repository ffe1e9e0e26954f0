// groups: jobs that belong together and end together.
import type { Book, Enqueued, EnqueueOptions, GroupMember, GroupRecord } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { paged } from "../list.ts";
import { duration, id, json, maybe, text, word } from "../field.ts";
import { due, making, notice } from "../shared-fields.ts";
import { copied, fields, section, state, table, when, type Part } from "../shown.ts";
import { exampleId, operate, patienceOf, read } from "../verb.ts";
import { groupEnds } from "../../jobs/notice.ts";
import { noticeOf } from "./job-view.ts";

const statuses = ["open", "completed", "failed", "partial", "cancelled"] as const;

type ShownGroup = GroupRecord & { readonly members: readonly GroupMember[] };

export const groups = {
  list: paged({
    words: "groups list",
    about: "list groups, newest first",
    input: { status: maybe(word("only groups in this state", statuses)) },
    examples: ["groups list --status failed"],
    find: (book, filter) => book.groups.list(filter),
    columns: {
      id: (group) => copied(group.id),
      name: (group) => group.name,
      mode: (group) => group.mode,
      "on failure": (group) => group.onFailure,
      status: (group) => state(group.status),
      created: (group) => when(group.createdAt),
      progress: progressOf,
    },
    none: "There are no such groups, or none before that cursor.",
    least: ["on failure", "mode", "created"],
  }),

  show: read({
    words: "groups show <id>",
    about: "show one group: its progress and its jobs",
    more: "Each slot shows the last job of its chain of retries.",
    input: { id: id("group") },
    run: (book, input) => groupOf(book, input.id),
    show: groupPage,
  }),

  create: operate({
    words: "groups create",
    http: "POST /groups",
    definitions: "may",
    definitionsOf: ({ jobs }) => toMembers(jobs).map(([name]) => name),
    about: "make a group and its jobs, in one transaction",
    more: `The jobs are a JSON list in their order. Each has its name as "job", its "params", and the options of an
enqueue (queue, priority, attempts, timeout, in, tags …). What a file here declares applies, as for
"jobs enqueue".`,
    input: {
      mode: word("one after another, or side by side", ["sequential", "parallel"]),
      onFailure: maybe(word("when a job fails for good (default: stop)", ["stop", "skip", "continue"])),
      name: maybe(text("for lists; need not be unique", "name")),
      notify: maybe(notice(groupEnds, "the group")),
      jobs: json('the jobs: [{ "job": name, "params": … }, …]', { bytesMax: 4 * limits.jsonBytesMax }),
    },
    examples: [
      `groups create --mode parallel --jobs '[{"job": "sum-orders", "params": {"month": 11}}]'`,
      "groups create --mode sequential --on-failure skip --name nightly --jobs @nightly.json",
    ],
    check: ({ jobs }) => void toMembers(jobs),
    async run(book, { jobs, ...options }) {
      const { id: made, jobs: members } = await book.groups.create(options, (group) => {
        for (const [name, params, more] of toMembers(jobs)) group.add(name, params, more);
      });
      return { id: made, jobs: members };
    },
    show: ({ id: made, jobs }) => [
      `${made} is open`,
      ...jobs.map(({ id: job, name, status: is, warning }) =>
        warning === undefined ? `${job} ${name}: ${is}` : `${job} ${name}: ${is}; ${warning}`,
      ),
    ],
  }),

  add: operate({
    words: "groups add <id> <name>",
    http: "POST /groups/{id}/jobs",
    definitions: "may",
    definitionsOf: ({ name }) => [name],
    about: "add a job behind those of an open group",
    more: "A group that has ended, or is about to, is a conflict (exit code 5).",
    input: {
      id: id("group"),
      name: text("the name of the job", "name"),
      ...making,
      in: due.in,
    },
    examples: [`groups add ${exampleId} send-report --params '{"to": "ada"}'`],
    async run(book, { id: group, name, params, ...options }): Promise<Enqueued> {
      return book.groups.add(group, name, params ?? {}, options);
    },
    show({ id: job, status: is, warning }, { id: group }) {
      const done = `${job} is added to ${group}: ${is}`;
      return warning === undefined ? done : [done, warning];
    },
  }),

  cancel: operate({
    words: "groups cancel <id>",
    about: "cancel what is left of a group",
    more: `A job that has not begun never runs, and one that runs is asked to end; the group ends with the last of
them. A group that has ended is a conflict (exit code 5).`,
    input: { id: id("group") },
    run: (book, input) => book.groups.cancel(input.id),
    show: (done) =>
      done.status === "cancelled" ? `${done.id} is cancelled` : `${done.id} ends when what runs of it has ended`,
  }),

  wait: read({
    words: "groups wait <id>",
    http: "GET /groups/{id}/end",
    about: "wait until a group has ended, and show it",
    more: `Exits with 0 when the group has completed and with 22 when it ended otherwise. One that has not ended in
time is a timeout (exit code 10) and goes on.`,
    input: {
      id: id("group"),
      timeout: maybe(duration("how long, such as 30s (default: without limit)")),
    },
    examples: [`groups wait ${exampleId} --timeout 10m`],
    async run(book, { id: group, timeout }, call) {
      await book.groups.wait(group, patienceOf(timeout, call));
      return groupOf(book, group);
    },
    show: groupPage,
    verdict: (found) => (found.status === "completed" ? undefined : "otherwise"),
  }),
};

async function groupOf(book: Book, group: string): Promise<ShownGroup> {
  return { ...(await book.groups.get(group)), members: await book.groups.members(group) };
}

type Member = [name: string, params: unknown, options: EnqueueOptions];

// Which options a job takes is for the library to say.
function toMembers(given: unknown): Member[] {
  if (!Array.isArray(given)) throw invalid(`jobs is ${quote(given)}: give a list of { "job": name, "params": … }`);
  return given.map((each: unknown, index) => {
    if (typeof each !== "object" || each === null || !("job" in each) || typeof each.job !== "string") {
      throw invalid(`jobs[${index}] is ${quote(each)}: give { "job": the name of the job, "params": … }`);
    }
    const { job, params, ...options } = each as { job: string; params?: unknown } & EnqueueOptions;
    return [job, params ?? {}, options];
  });
}

function groupPage({ members, ...group }: ShownGroup): Part[] {
  const facts = fields({
    group: copied(group.id),
    name: group.name,
    mode: `${group.mode}, on failure ${group.onFailure}`,
    status: state(group.status),
    progress: progressOf(group),
    notifies: noticeOf(group.notify),
    created: when(group.createdAt),
    finished: when(group.finishedAt),
  });
  const jobs = table(members, {
    slot: (member) => member.slot + 1,
    job: (member) => copied(member.id),
    name: (member) => member.name,
    status: (member) => state(member.status),
    try: (member) => member.attempt,
  });
  return [facts, section("jobs", jobs)];
}

/** How many jobs have completed, and what the others are. */
function progressOf({ progress: { total, completed, ...rest } }: GroupRecord): string {
  const others = Object.entries(rest).filter(([, many]) => many > 0);
  return [`${completed} of ${total} completed`, ...others.map(([is, many]) => `${many} ${is}`)].join(", ");
}
