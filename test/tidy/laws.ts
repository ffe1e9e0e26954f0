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

/** A room writes its own tables; another room calls its function. */
export function foreignWrites({ path, text }: SourceFile, owners: ReadonlyMap<string, string>): Found[] {
  const room = roomOf(path);
  if (room === undefined) return [];
  return [...withoutComments(text).matchAll(/\b(?:update|insert into|delete from) (daybook_\w+)/g)].flatMap((match) => {
    const [statement, table = ""] = match;
    const owner = owners.get(table);
    if (owner === undefined || owner === room || alsoWrites[table] === path) return [];
    const message = `"${statement}": ${table} belongs to src/${owner}; call a function of that room`;
    return [{ offset: match.index, message }];
  });
}

/** A program that runs in a thread or a process of its own is its own state; OpenTelemetry's API is there once in a process, and
 *  `remember` is the place for what is only computed once. */
const mayKeep = /-(?:thread|program)\.ts$|^src\/(?:telemetry\/trace|core\/remember)\.ts$/;

/** What a module keeps between calls is found nowhere: a store keeps it, or `remember` does. */
export function hiddenState({ path, code }: SourceFile & { readonly code: string }): Found[] {
  if (!path.startsWith("src/") || mayKeep.test(path)) return [];
  const kept =
    /^(?:export )?(?:let \w+|const \w+(?:: (?!Readonly(?:Set|Map)\b)[^=\n]+)? = new (?:Weak)?(?:Map|Set)\b(?!\s*(?:<[^\n]*>)?\(\[))/gm;
  return [...code.matchAll(kept)].map((match) => ({
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
