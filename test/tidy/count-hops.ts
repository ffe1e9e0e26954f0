// Counts which files a piece of work passes: every function of src says its file when it is entered, and a hop is an entry into
// another file than the one before. The same work gives nearly the same numbers, so two trees can be compared.
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";

export type Trail = { readonly files: readonly string[]; readonly hops: number };

const entered: { names: Set<string>; hops: number; last: string; on: boolean } = {
  names: new Set(),
  hops: 0,
  last: "",
  on: false,
};

/** Marks every function of what is imported from `folder` from now on. */
export function markFunctions(folder: string): void {
  Object.assign(globalThis, { enterFile });
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.startsWith(folder) || !url.endsWith(".ts") || typeof loaded.source === "string") return loaded;
      const text = new TextDecoder().decode(loaded.source);
      return { ...loaded, source: marked(fileURLToPath(url), text) };
    },
  });
}

function enterFile(name: string): void {
  if (!entered.on || name === entered.last) return;
  entered.names.add(name);
  entered.hops++;
  entered.last = name;
}

/** The files that `work` passed, and how often it went from one to another. */
export async function trailOf(work: () => Promise<unknown>): Promise<Trail> {
  Object.assign(entered, { names: new Set(), hops: 0, last: "", on: true });
  await work();
  entered.on = false;
  return { files: [...entered.names], hops: entered.hops };
}

type Body = { readonly type: string; readonly start: number; readonly end: number };

function marked(path: string, text: string): string {
  const call = `enterFile(${JSON.stringify(path)})`;
  const inserts: { at: number; text: string }[] = [];
  const mark = ({ body }: { readonly body: Body | null }): void => {
    if (body === null) return;
    if (body.type === "BlockStatement" || body.type === "FunctionBody") {
      inserts.push({ at: body.start + 1, text: ` ${call};` });
    } else {
      inserts.push({ at: body.start, text: `(${call}, ` }, { at: body.end, text: ")" });
    }
  };
  const { program } = parseSync(path, text);
  new Visitor({
    FunctionDeclaration: mark,
    FunctionExpression: mark,
    ArrowFunctionExpression: mark,
  }).visit(program);
  let out = text;
  // From the end, so that the places before it stay where they are.
  for (const insert of inserts.sort((a, b) => b.at - a.at)) {
    out = out.slice(0, insert.at) + insert.text + out.slice(insert.at);
  }
  return out;
}
