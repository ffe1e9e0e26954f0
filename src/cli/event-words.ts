// Events, listeners and dead letters in words.
import { isoTime } from "../core/time.ts";
import type { EventInfo } from "../events/event.ts";
import type { ListenerRecord } from "../events/listeners.ts";
import type { DeadLetterRecord } from "../events/read-dead-letter.ts";
import type { EventRecord, EventTree } from "../events/read-event.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showJson, showTable, timeCell } from "./show.ts";

export function infoJson(info: EventInfo): Record<string, unknown> {
  return { ...info, publishedAt: isoTime(info.publishedAt), availableAt: isoTime(info.availableAt) };
}

export function eventJson(event: EventRecord): Record<string, unknown> {
  const deliveries = event.deliveries.map((each) => ({
    ...each,
    availableAt: isoTime(each.availableAt),
    endedAt: isoOrNull(each.endedAt),
  }));
  return { ...event, ...infoJson(event), deliveries };
}

export function eventTable(events: readonly EventRecord[]): Promise<string> {
  return showTable(
    ["id", "topic", "status", "listeners", "published"],
    events.map((event) => [
      plainCell(event.id),
      plainCell(event.topic),
      event.status,
      plainCell(event.deliveries.map(({ listener, status }) => `${listener}: ${status}`).join(", "), 80),
      timeCell(event.publishedAt),
    ]),
  );
}

/** Everything about one event, and what it caused. */
export async function eventWords(event: EventRecord, tree: EventTree): Promise<string> {
  const fields: readonly (readonly [string, string | null])[] = [
    ["event", plainCell(event.id, 200)],
    ["topic", plainCell(event.topic, 500)],
    ["status", event.status],
    ["priority", String(event.priority)],
    ["key", event.key === null ? null : plainCell(event.key, 200)],
    ["published", isoTime(event.publishedAt)],
    ["not before", event.availableAt === event.publishedAt ? null : isoTime(event.availableAt)],
    ["depth", event.chainDepth === 0 ? null : String(event.chainDepth)],
    ["published by run", event.causeRunId],
    ["replay of", event.replayOf],
    ["headers", Object.keys(event.headers).length === 0 ? null : plainCell(JSON.stringify(event.headers), 500)],
  ];
  const said = fields.filter((field): field is readonly [string, string] => field[1] !== null);
  const parts = [await showFields(said), "", "payload", showJson(event.payload), ""];
  parts.push(event.deliveries.length === 0 ? "No listener was told of it." : await deliveryTable(event));
  if (tree.caused.length > 0) parts.push("", "chain", ...treeLines(tree, event.id));
  return parts.join("\n");
}

function deliveryTable(event: EventRecord): Promise<string> {
  return showTable(
    ["listener", "status", "tries", "job", "error"],
    event.deliveries.map((each) => [
      plainCell(each.listener),
      each.waitsFor === null ? each.status : `${each.status} (${each.waitsFor})`,
      String(each.attempts),
      each.jobId,
      plainCell(each.error === null ? "" : `${each.error.type}: ${each.error.message}`),
    ]),
  );
}

function treeLines(tree: EventTree, here: string, indent = ""): string[] {
  const mark = tree.id === here ? "  ← this one" : "";
  return [
    `${indent}${plainCell(tree.topic)}  ${plainCell(tree.id)}${mark}`,
    ...tree.caused.flatMap((each) => treeLines(each, here, `${indent}  `)),
  ];
}

type Seen = Pick<ListenerRecord, "state" | "paused" | "hosted" | "registeredAt">;

export function listenerJson(listener: Seen): Record<string, unknown> {
  const { paused, registeredAt } = listener;
  return {
    ...listener,
    registeredAt: isoTime(registeredAt),
    paused: paused === null ? null : { ...paused, at: isoTime(paused.at) },
  };
}

export function stateWords({ state, paused, hosted }: Seen): string {
  return [state.replace("_", " "), ...(paused === null ? [] : ["paused"]), ...(hosted ? [] : ["no host"])].join(", ");
}

export function listenerTable(listeners: readonly ListenerRecord[]): Promise<string> {
  return showTable(
    ["listener", "hears", "state", "lag", "oldest", "dead letters"],
    listeners.map((each) => [...hearingCells(each), String(each.deadLetters)]),
  );
}

/** Who hears what, how it is, and how far behind: the same for a listener and for a sink. */
export function hearingCells(each: Seen & Pick<ListenerRecord, "name" | "topics" | "lag">): string[] {
  const { events, seconds } = each.lag;
  const oldest = events === 0 ? "" : `${Math.round(seconds)} s`;
  return [plainCell(each.name), plainCell(each.topics.join(", ")), stateWords(each), String(events), oldest];
}

export function letterJson(letter: DeadLetterRecord): Record<string, unknown> {
  const { firstFailedAt, failedAt, endedAt } = letter;
  return {
    ...letter,
    firstFailedAt: isoTime(firstFailedAt),
    failedAt: isoTime(failedAt),
    endedAt: isoOrNull(endedAt),
  };
}

export function letterTable(letters: readonly DeadLetterRecord[]): Promise<string> {
  return showTable(
    ["id", "listener", "topic", "status", "tries", "error", "failed"],
    letters.map((each) => [
      each.id,
      plainCell(each.listener),
      plainCell(each.topic),
      each.status,
      String(each.attempts),
      plainCell(`${each.error.type}: ${each.error.message}`),
      timeCell(each.failedAt),
    ]),
  );
}

export async function letterWords(letter: DeadLetterRecord): Promise<string> {
  const fields: readonly (readonly [string, string | null])[] = [
    ["dead letter", letter.id],
    ["status", letter.status],
    ["listener", plainCell(letter.listener, 200)],
    ["event", plainCell(letter.eventId, 200)],
    ["topic", plainCell(letter.topic, 500)],
    ["job", letter.jobId],
    ["tries", String(letter.attempts)],
    ["redrives", String(letter.redrives)],
    ["failed", isoTime(letter.failedAt)],
    ["error", plainCell(`${letter.error.type}: ${letter.error.message}`, 2000)],
    ["ended", letter.endedAt === null ? null : isoTime(letter.endedAt)],
    ["reason", letter.reason === null ? null : plainCell(letter.reason, 2000)],
  ];
  const said = fields.filter((field): field is readonly [string, string] => field[1] !== null);
  return `${await showFields(said)}\n\npayload\n${showJson(letter.payload)}`;
}
