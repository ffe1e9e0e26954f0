// How a person reads jobs and runs.
import type { CommandRecord, JobDetails, JobRecord, JobRun, RunLog, ShownNotice } from "../../index.ts";
import {
  ago,
  asJson,
  bytes,
  copied,
  fields,
  lines,
  section,
  state,
  table,
  when,
  words,
  type Cell,
  type Part,
} from "../shown.ts";

export const jobTable = {
  columns: {
    id: (job: JobRecord) => copied(job.id),
    name: (job: JobRecord) => copied(job.name),
    queue: (job: JobRecord) => job.queue,
    status: (job: JobRecord) => state(job.status),
    try: (job: JobRecord) => copied(`${job.attempt}/${job.attempts}`),
    created: (job: JobRecord) => when(job.createdAt),
    note: noteOf,
  },
  least: ["queue", "try", "created"],
};

/** What one wants to know next about a job in this state. */
function noteOf(job: JobRecord): Cell {
  if (job.waitsFor === "time") return words("starts", ago(job.availableAt));
  if (job.waitsFor !== null) return `waits for its ${job.waitsFor}`;
  if (job.gone) return "its process is gone: recover it";
  if (job.status === "running")
    return job.progress === null ? words("since", ago(job.startedAt)) : progressOf(job.progress);
  const error = errorLine(job.run?.error ?? null);
  return job.retriedBy === null ? error : `tried again; ${error}`;
}

function progressOf({ done, note }: NonNullable<JobRecord["progress"]>): string {
  return `${Math.floor(done * 100)} %${note === null ? "" : `: ${note}`}`;
}

export function errorLine(error: JobRun["error"]): string {
  return error === null ? "" : `${error.type}: ${error.message}`;
}

/** Whom a notice tells of what. */
export function noticeOf(notify: ShownNotice | null): string | null {
  return notify === null ? null : `${notify.on.join(", ")} → ${notify.to}`;
}

export function jobPage(job: JobDetails, chain: readonly JobRecord[], logs: readonly RunLog[]): Part[] {
  const { run } = job;
  return [
    jobFields(job),
    section("params", asJson(job.params)),
    ...(run?.result == null ? [] : [section("result", asJson(run.result))]),
    ...(run?.command == null ? [] : commandParts(run.command)),
    ...(run?.error == null ? [] : [section("error", errorLines(run.error))]),
    ...(chain.length === 1 ? [] : [section("chain", table(chain, jobTable.columns, jobTable))]),
    ...(logs.length === 0 ? [] : [section("logs", logTable(logs))]),
  ];
}

function jobFields(job: JobDetails): Part {
  const { run, cause } = job;
  return fields({
    job: copied(job.id),
    name: job.name,
    queue: `${job.queue}, priority ${job.priority}${job.position === null ? "" : `, position ${job.position}`}`,
    status: state(job.status, job.waitsFor === null ? "" : `, waits for its ${job.waitsFor}`),
    attempt: `${job.attempt} of ${job.attempts}${job.losses === 0 ? "" : `, lost ${job.losses} times`}`,
    origin: job.origin,
    template: job.template,
    key: job.key,
    tags: job.tags.length === 0 ? null : job.tags.join(", "),
    created: when(job.createdAt),
    due: job.availableAt === job.createdAt ? null : when(job.availableAt),
    started: when(job.startedAt),
    finished: when(job.finishedAt),
    progress: job.progress === null ? null : progressOf(job.progress),
    notifies: noticeOf(job.notify),
    session: copied(job.sessionId),
    run: run === null ? copied(job.runId) : `${run.id}: ${run.status} in ${Math.round(run.durationMs)} ms`,
    "caused by": cause === null ? null : `run ${cause.runId}`,
    "root cause": cause === null ? null : `run ${cause.rootRunId}`,
    "retry of": copied(job.retryOf),
    "retried by": copied(job.retriedBy),
  });
}

export function logTable(logs: readonly RunLog[]): Part {
  return table(logs, {
    at: (line) => when(line.at),
    level: (line) => line.level,
    message: (line) => line.message,
    fields: (line) => (line.fields === null ? null : JSON.stringify(line.fields)),
  });
}

/** The trace names the error again, so it stands for both when there is one. */
export function errorLines({ type, message, trace }: NonNullable<JobRun["error"]>): Part {
  if (trace?.includes(message) === true) return lines(trace);
  return lines(`${type}: ${message}${trace === null ? "" : `\n${trace}`}`);
}

/** A program that a run started: how it ended, where its output is, and what it made. */
function commandParts({ argv, pid, host, note, log, artifacts, artifactsLeftOut, ...command }: CommandRecord): Part[] {
  const facts = fields({
    argv: JSON.stringify(argv),
    process: pid === null ? `not started, on ${host}` : `${pid} on ${host}`,
    "exit code": exitOf(command),
    "log file": log === null ? null : `${log.path}${sizeOf(log)}`,
    note,
  });
  const made = table(artifacts, {
    path: ({ path }) => path,
    size: (each) => copied(bytes(each.bytes)),
    sha256: ({ sha256 }) => copied(sha256),
  });
  return [
    section("program", facts),
    ...(artifacts.length === 0 ? [] : [section("artifacts", made)]),
    ...(artifactsLeftOut === 0 ? [] : [lines(`and ${artifactsLeftOut} more`)]),
    ...(log === null || log.tail === "" ? [] : [section("the end of its output", lines(log.tail.trimEnd()))]),
  ];
}

function exitOf({ exitCode, signal }: Pick<CommandRecord, "exitCode" | "signal">): string | null {
  if (exitCode !== null) return String(exitCode);
  return signal === null ? null : `none, ended by ${signal}`;
}

function sizeOf({ bytes: size, truncated }: NonNullable<CommandRecord["log"]>): string {
  if (size === null) return "";
  return ` (${bytes(size)}${truncated ? ", not all of it kept" : ""})`;
}
