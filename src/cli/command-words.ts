// A program that a run started, in words: how it ended, where its output is, and what it made.
import type { CommandRecord } from "../jobs/command/command-record.ts";
import { plainCell, plainLines, showBytes, showFields, showTable } from "./show.ts";

export async function commandWords(command: CommandRecord): Promise<string> {
  const { log, artifacts, artifactsLeftOut } = command;
  const fields: readonly (readonly [string, string | null])[] = [
    ["argv", plainCell(JSON.stringify(command.argv), 500)],
    ["process", command.pid === null ? `not started, on ${command.host}` : `${command.pid} on ${command.host}`],
    ["exit code", endOf(command)],
    ["log file", log === null ? null : `${plainCell(log.path, 500)}${sizeOf(log)}`],
    ["note", command.note === null ? null : plainCell(command.note, 500)],
  ];
  const rows = artifacts.map(({ path, bytes, sha256 }) => [plainCell(path, 100), showBytes(bytes), sha256]);
  const parts = [
    await showFields(fields.filter((field): field is readonly [string, string] => field[1] !== null)),
    ...(rows.length === 0 ? [] : [`artifacts\n${await showTable(["path", "size", "sha256"], rows)}`]),
    ...(artifactsLeftOut === 0 ? [] : [`and ${artifactsLeftOut} more`]),
    ...(log === null || log.tail === "" ? [] : [`the end of its output\n${plainLines(log.tail.trimEnd())}`]),
  ];
  return parts.join("\n\n");
}

function endOf({ exitCode, signal }: CommandRecord): string | null {
  if (exitCode !== null) return String(exitCode);
  return signal === null ? null : `none, ended by ${signal}`;
}

function sizeOf({ bytes, truncated }: NonNullable<CommandRecord["log"]>): string {
  if (bytes === null) return "";
  return ` (${showBytes(bytes)}${truncated ? ", not all of it kept" : ""})`;
}
