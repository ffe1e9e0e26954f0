// The laws of the house that concern data: who writes which table, what moves a job, and where state may live.
import { roomOf } from "./rooms.ts";
import type { SourceFile } from "./scan.ts";

type Found = { readonly offset: number; readonly message: string };

/** Which room makes each table. */
export function tableOwners(files: readonly SourceFile[]): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const { path, text } of files) {
    const room = roomOf(path);
    if (room === undefined) continue;
    for (const [, table = ""] of text.matchAll(/\bcreate table (?:if not exists )?(daybook_\w+)/g))
      owners.set(table, room);
  }
  return owners;
}

// An open run is a row of the line and becomes a row of `run` in one statement, which only the file that moves jobs can write.
const alsoWrites: Readonly<Record<string, string>> = { daybook_run: "src/jobs/state.ts" };

const writes =
  /(?:\b(?:update|(?:insert|replace)(?:\s+or\s+\w+)?\s+into|delete\s+from)\s+|\binsertInto\(\s*["'`])(daybook_\w+)/gi;

/** A room writes its own tables; another room calls its function. */
export function foreignWrites({ path, text }: SourceFile, owners: ReadonlyMap<string, string>): Found[] {
  const room = roomOf(path);
  if (room === undefined) return [];
  return [...withoutComments(text).matchAll(writes)].flatMap((match) => {
    const [statement, table = ""] = match;
    const owner = owners.get(table);
    if (owner === undefined || owner === room || alsoWrites[table] === path) return [];
    const message = `"${statement}": ${table} belongs to src/${owner}; call a function of that room`;
    return [{ offset: match.index, message }];
  });
}

// A job begins with its row in the line, and only its status and its leaving are moves.
const alsoBegins = "src/jobs/enqueue.ts";

/** One file moves jobs between their states: no other sets a status in the line, adds a row or removes one. */
export function strayMoves({ path, text }: SourceFile): Found[] {
  if (!path.startsWith("src/") || path === "src/jobs/state.ts") return [];
  const clean = withoutComments(text);
  const statements = [...clean.matchAll(/\b(?:update|insert\s+into|delete\s+from)\s+daybook_line\b[^`]*/gi)];
  const builders = path === alsoBegins ? [] : [...clean.matchAll(/\binsert(?:Into|Of)\(\s*["'`]daybook_line/g)];
  return [...statements.filter(([statement]) => !/^update/i.test(statement) || setsStatus(statement)), ...builders].map(
    ({ index }) => ({
      offset: index,
      message: "moves a job; only src/jobs/state.ts moves jobs between states: call one of its functions",
    }),
  );
}

function setsStatus(update: string): boolean {
  const [, ...sets] = update.split(/\bset\b/i);
  const [first = ""] = sets;
  if (/^\s*\([^)]*\bstatus\b[^)]*\)\s*=/i.test(first)) return true;
  let flat = first;
  while (/\([^()]*\)/.test(flat)) flat = flat.replaceAll(/\([^()]*\)/g, "");
  return /\bstatus\s*=/i.test(flat.split(/\b(?:where|from)\b/i)[0] ?? "");
}

/** A program that runs in a thread or a process of its own is its own state; OpenTelemetry's API is there once in a process, and
 *  `remember` is the place for what is only computed once. */
// A page in a browser is one reader's; what it remembers stands in state/.
const mayKeep = /-(?:thread|program)\.ts$|^src\/(?:telemetry\/trace|core\/remember)\.ts$|^src\/dashboard\/state\//;

/** What a module keeps between calls is found nowhere: a store keeps it, or `remember` does. */
export function hiddenState({ path, code }: SourceFile & { readonly code: string }): Found[] {
  if (!path.startsWith("src/") || mayKeep.test(path)) return [];
  const kept =
    /^(?:export )?(?:let \w+|const \w+(?:: (?!Readonly(?:Set|Map)\b)[^=\n]+)? = new (?:Weak)?(?:Map|Set)\b(?!\s*(?:<[^\n]*>)?\(\[))/gm;
  const filled = /^(?:export )?const \w+(?:: (?:(?!readonly )[^=\n]+\[\]|Record<[^=\n]+))? = (?:\[\]|\{\});/gm;
  return [...code.matchAll(kept), ...code.matchAll(filled)].map((match) => ({
    offset: match.index,
    message: `"${match[0]}" keeps state in the module; use store.keep, or remember() for what is only computed once`,
  }));
}

/** Such a spread only keeps a line short. */
export function literalSpreads({ code }: SourceFile & { readonly code: string }): Found[] {
  return [...code.matchAll(/\.\.\.\{/g)].map((match) => ({
    offset: match.index,
    message: "spreads an object literal into another; write its fields, long literals stay long",
  }));
}

function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/|\*|\/\*\*).*$/gm, (line) => " ".repeat(line.length));
}
