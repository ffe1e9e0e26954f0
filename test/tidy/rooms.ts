import { posix } from "node:path";

/** The rooms of the house from the ground up. Rooms on one row do not know each other. */
const rows: readonly (readonly string[])[] = [
  ["core"],
  ["storage"],
  ["records", "telemetry", "access"],
  ["jobs"],
  ["schedules", "events", "calls"],
  ["apps"],
  ["front door"],
  ["verbs"],
  ["client"],
  ["server", "dashboard"],
  ["cli"],
];

/** The drawers of the front door. */
const drawers: readonly string[] = ["define", "open", "book"];

/** The room a file of `src/` belongs to; `src/index.ts` and the three drawers beside it are the front door. */
export function roomOf(path: string): string | undefined {
  const [top, room, ...rest] = path.split("/");
  if (top !== "src" || room === undefined) return undefined;
  return rest.length === 0 || drawers.includes(room) ? "front door" : room;
}

export function isRoom(room: string): boolean {
  return rowOf(room) >= 0;
}

/** What is wrong with this import, or undefined. Only files of `src/` are held to the order of the rooms. */
export function wrongImport(path: string, specifier: string): string | undefined {
  const from = roomOf(path);
  if (from === undefined || !isRoom(from)) return undefined;

  const target = specifier === "daybook" ? "src/index.ts" : resolve(path, specifier);
  if (target === undefined || target === "package.json") return undefined;
  const to = roomOf(target);
  if (to === undefined) return `imports ${target}; the product may import only src/: move what it needs there`;
  if (to === from || !isRoom(to) || rowOf(to) < rowOf(from)) return undefined;

  return rowOf(to) === rowOf(from)
    ? `imports ${target}: ${from} and ${to} stand on one row and may not know each other; move what both need to a ` +
        `room below, or wire the two together in a row above`
    : `imports ${target}: ${to} stands above ${from}; move what ${from} needs down to it or below, or let the front ` +
        `door hand it in (a function, a kind of job, or the port announce)`;
}

function rowOf(room: string): number {
  return rows.findIndex((row) => row.includes(room));
}

function resolve(path: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : undefined;
}
