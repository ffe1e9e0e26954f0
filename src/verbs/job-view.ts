// How a person reads jobs and runs.
import type { CommandRecord, JobRecord, JobRun, RunLog } from "../index.ts";
import { ago, bytes, fields, id, json, lines, section, status, table, time, words } from "./shown.ts";
import type { Cell, Part } from "./shown.ts";

export function jobTable(jobs: readonly JobRecord[], none = "There are no such jobs."): Part {
  const columns = {
    id: (job: JobRecord) => id(job.id),
    name: (job: JobRecord) => job.name,
    queue: (job: JobRecord) => job.queue,
    status: (job: JobRecord) => status(job.status),
    try: (job: JobRecord) => id(`${job.attempt}/${job.attempts}`),
    created: (job: JobRecord) => time(job.createdAt),
    note: noteOf,
  };
  return table(jobs, columns, { none, least: ["queue", "try", "created"] });
}

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

export function jobPage(job: JobRecord, chain: readonly JobRecord[], logs: readonly RunLog[]): Part[] {
  const { run } = job;
  return [
    jobFields(job),
    section("params", json(job.params)),
    ...(run?.result == null ? [] : [section("result", json(run.result))]),
    ...(run?.command == null ? [] : commandParts(run.command)),
    ...(run?.error == null ? [] : [section("error", errorLines(run.error))]),
    ...(chain.length === 1 ? [] : [section("chain", jobTable(chain))]),
    ...(logs.length === 0 ? [] : [section("logs", logTable(logs))]),
  ];
}

function jobFields(job: JobRecord): Part {
  const { run, cause } = job;
  return fields({
    job: id(job.id),
    name: job.name,
    queue: `${job.queue}, priority ${job.priority}${job.position === null ? "" : `, position ${job.position}`}`,
    status: status(job.status, job.waitsFor === null ? "" : `, waits for its ${job.waitsFor}`),
    attempt: `${job.attempt} of ${job.attempts}${job.losses === 0 ? "" : `, lost ${job.losses} times`}`,
    origin: job.origin,
    template: job.template,
    key: job.key,
    tags: job.tags.length === 0 ? null : job.tags.join(", "),
    created: time(job.createdAt),
    due: job.availableAt === job.createdAt ? null : time(job.availableAt),
    started: time(job.startedAt),
    finished: time(job.finishedAt),
    progress: job.progress === null ? null : progressOf(job.progress),
    session: id(job.sessionId),
    run: run === null ? id(job.runId) : `${run.id}: ${run.status} in ${Math.round(run.durationMs)} ms`,
    "caused by": cause === null ? null : `run ${cause.runId}`,
    "root cause": cause === null ? null : `run ${cause.rootRunId}`,
    "retry of": id(job.retryOf),
    "retried by": id(job.retriedBy),
  });
}

export function logTable(logs: readonly RunLog[]): Part {
  const columns = {
    at: (line: RunLog) => time(line.at),
    level: (line: RunLog) => line.level,
    message: (line: RunLog) => line.message,
    fields: (line: RunLog) => (line.fields === null ? null : JSON.stringify(line.fields)),
  };
  return table(logs, columns);
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
  const columns = {
    path: ({ path }: (typeof artifacts)[number]) => path,
    size: (each: (typeof artifacts)[number]) => id(bytes(each.bytes)),
    sha256: ({ sha256 }: (typeof artifacts)[number]) => id(sha256),
  };
  return [
    section("program", facts),
    ...(artifacts.length === 0 ? [] : [section("artifacts", table(artifacts, columns))]),
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
