// A group in words: what it is, how far it is, and its jobs.
import { styleText } from "node:util";
import { isoTime } from "../core/time.ts";
import type { GroupMember, GroupRecord } from "../jobs/group/groups.ts";
import { isoOrNull, showStatus } from "./job-words.ts";
import { plainCell, showFields, showTable, showTime, timeCell } from "./show.ts";

export function groupJson(group: GroupRecord): Record<string, unknown> {
  return { ...group, createdAt: isoTime(group.createdAt), finishedAt: isoOrNull(group.finishedAt) };
}

export function groupTable(groups: readonly GroupRecord[]): Promise<string> {
  return showTable(
    ["id", "name", "mode", "on failure", "status", "created", "progress"],
    groups.map((group) => [
      group.id,
      group.name === null ? "" : plainCell(group.name, 32),
      group.mode,
      group.onFailure,
      groupStatus(group.status),
      timeCell(group.createdAt),
      progressOf(group),
    ]),
  );
}

export async function groupWords(group: GroupRecord, members: readonly GroupMember[]): Promise<string> {
  const [created, finished] = [showTime(group.createdAt), showTime(group.finishedAt)];
  const fields = await showFields([
    ["group", group.id],
    ...(group.name === null ? [] : [["name", plainCell(group.name, 200)] as const]),
    ["mode", `${group.mode}, on failure ${group.onFailure}`],
    ["status", groupStatus(group.status)],
    ["progress", progressOf(group)],
    ["created", `${created.exact} (${created.ago})`],
    ...(group.finishedAt === null ? [] : [["finished", `${finished.exact} (${finished.ago})`] as const]),
  ]);
  const rows = members.map(({ slot, id, name, status, attempt }) => [
    ...[String(slot + 1), id, plainCell(name, 40), showStatus(status), String(attempt)],
  ]);
  return `${fields}\n\n${await showTable(["slot", "job", "name", "status", "try"], rows)}`;
}

/** How many of the slots are done, and what the others are. */
function progressOf({ progress: { total, completed, ...rest } }: GroupRecord): string {
  const others = Object.entries(rest).filter(([, count]) => count > 0);
  return [`${completed} of ${total} completed`, ...others.map(([status, count]) => `${count} ${status}`)].join(", ");
}

const colours = { open: "cyan", completed: "dim", failed: "red", partial: "yellow", cancelled: "yellow" } as const;

export function groupStatus(status: GroupRecord["status"]): string {
  return styleText(colours[status], status, { stream: process.stdout });
}
