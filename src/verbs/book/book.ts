// errors, logs, metrics, health, info, tenants and doctor: how the book is, and how things go in it.
import type { Book, BookInfo, BookZone, Finding } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { listed, paged } from "../list.ts";
import { maybe, text, word } from "../field.ts";
import { bytes, copied, fields, lines, section, state, table, when, words, type Part } from "../shown.ts";
import { ownerOf, scope, stretch } from "../memory/tally.ts";
import { copy } from "./copy.ts";
import { glance } from "./glance.ts";
import { keep } from "./keep.ts";
import { read } from "../verb.ts";

const levels = ["debug", "info", "warn", "error"] as const;

export const book = {
  errors: paged({
    words: "errors",
    about: "list errors, those that look alike as one, the latest first",
    more: `Errors of one type whose messages differ only in numbers, ids and quoted values count as one. They stay
listed after their runs are removed. What is shown of the last one comes from a single run: see it
with "runs show".`,
    input: scope,
    examples: ["errors --app kitchen --since 7d"],
    find: (of, filter) => of.telemetry.errors(filter),
    columns: {
      times: ({ runs }) => runs,
      last: ({ last }) => when(last.at),
      kind: ({ kind }) => kind,
      name: ({ name }) => name,
      app: ({ app }) => ownerOf(app),
      error: ({ last }) => `${last.type}: ${last.message}`,
      "last run": ({ last }) => copied(last.runId),
    },
    none: "There were no errors in that time.",
    least: ["app", "kind", "last run"],
  }),

  logs: paged({
    words: "logs",
    about: "list the lines that runs have logged, newest first",
    more: 'The lines of one run, in their order, are in "runs show".',
    input: {
      ...stretch,
      level: maybe(word("this level and those above it", levels)),
      name: maybe(text("only of the job, listener or schedule of this name", "name")),
      app: maybe(text("only of this app", "key", limits.nameBytesMax)),
    },
    examples: ["logs --level warn --name lights --since 1h"],
    find: (of, filter) => of.telemetry.logs(filter),
    columns: {
      at: ({ at }) => when(at),
      level: ({ level }) => state(level),
      name: ({ name }) => name,
      message: ({ message, fields: more }) => words(message, more === null ? null : JSON.stringify(more)),
      run: ({ runId }) => copied(runId),
    },
    none: "There are no such lines.",
    least: ["run", "name"],
  }),

  metrics: read({
    words: "metrics",
    text: true,
    about: "print metrics as Prometheus reads them",
    more: `The text is Prometheus' own, of the tenant that the book is seen as. Counters only grow, whatever
retention removes.`,
    examples: ["metrics --tenant acme"],
    run: (book) => book.metrics(),
    show: (shown) => shown,
  }),

  info: read({
    words: "info",
    of: "book",
    about: "show what the book is: where, which engine, which schema, how big",
    async run(book): Promise<BookInfo & BookZone & { sessionsRunning: number }> {
      return { ...(await book.info()), sessionsRunning: await countRunning(book) };
    },
    show: infoPage,
  }),

  tenants: listed({
    words: "tenants",
    of: "book",
    about: "list the tenants that have work in the book, with what they have not ended",
    more: "It is about the whole book, whatever --tenant says.",
    find: listTenants,
    columns: {
      tenant: ({ tenant }) => tenant,
      queues: ({ queues }) => queues,
      "open jobs": ({ jobs }) => jobs,
      "open calls": ({ calls }) => calls,
    },
    none: "Nobody has had work in this book yet.",
  }),

  doctor: read({
    words: "doctor",
    of: "book",
    about: "check every invariant of the book, and say what to do about what is found",
    more: "It changes nothing. The exit code is 0 when every check holds, and 20 when one found something.",
    async run(book) {
      const findings: readonly Finding[] = await book.doctor();
      const { checks } = await import("../../book/doctor.ts");
      return { checks: checks.length, findings };
    },
    show: ({ checks, findings }) =>
      findings.length === 0
        ? `all ${checks} checks hold`
        : [...findings.map(findingPart), section(`${findings.length} of ${checks} checks found something`)],
    verdict: ({ findings }) => (findings.length === 0 ? undefined : "found"),
  }),

  ...glance,
  ...keep,
  ...copy,
};

// Sessions that ended without a word count until another process has noticed; "sessions list" shows their last beat.
async function countRunning(book: Book): Promise<number> {
  const [row] = await book.read(
    (tx) => tx.sql<{ count: number }>`select count(*) as count from daybook_session where status = 'running'`,
  );
  return Number(row?.count ?? 0);
}

function infoPage(about: BookInfo & BookZone & { readonly sessionsRunning: number }): Part[] {
  const isFile = about.dialect === "sqlite";
  const migrations = table(about.migrations, {
    migration: ({ number }) => number,
    name: ({ name }) => name,
    applied: ({ appliedAt }) => when(appliedAt),
  });
  return [
    fields({
      location: about.location,
      engine: `${isFile ? "SQLite" : "PostgreSQL"} ${about.engine}`,
      schema: about.schema,
      "schema version": about.schemaVersion,
      size: bytes(about.bytes),
      "write-ahead log": isFile ? bytes(about.walBytes) : null,
      zone: about.zone,
      sessions: `${about.sessionsRunning} running`,
    }),
    section("migrations", migrations),
  ];
}

type Tenant = { readonly tenant: string; readonly queues: number; readonly jobs: number; readonly calls: number };

async function listTenants(book: Book): Promise<readonly Tenant[]> {
  const rows = await book.read(
    (tx) => tx.sql<Tenant>`select lane.tenant_id as tenant, count(*) as queues,
        (select count(*) from daybook_line line join daybook_job job on job.seq = line.seq
          where job.tenant_id = lane.tenant_id) as jobs,
        (select count(*) from daybook_call call where call.tenant_id = lane.tenant_id
          and call.status in ('scheduled', 'running')) as calls
      from daybook_lane lane group by lane.tenant_id order by lane.tenant_id`,
  );
  return rows.map(({ tenant, queues, jobs, calls }) => ({
    tenant,
    queues: Number(queues),
    jobs: Number(jobs),
    calls: Number(calls),
  }));
}

function findingPart({ promise, name, found, count: all, advice }: Finding): Part {
  const more = all - found.length;
  const offenders = [...found, ...(more === 0 ? [] : [`… and ${more} more`])];
  return section(
    `${promise} does not hold: ${name} (${all} found)`,
    // What was found holds names of the user's own, which must not end a line.
    lines([...offenders.map((each) => `     ${each.replaceAll(/\s+/g, " ")}`), `   → ${advice}`].join("\n")),
  );
}
