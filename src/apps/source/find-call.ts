// The text of the call that stands at a place of a file, found by parsing the file: brackets in strings, comments and
// templates would fool anything less.
import type { CallExpression, Node } from "oxc-parser";

export type Calls = readonly CallExpression[];

/** Every call of the text. */
export async function parseCalls(file: string, text: string): Promise<Calls> {
  const { parseSync, Visitor } = await import("oxc-parser");
  const { program } = parseSync(file, text);
  const calls: CallExpression[] = [];
  new Visitor({ CallExpression: (call) => void calls.push(call) }).visit(program);
  return calls;
}

/** The call whose name stands at this line and column, both from 1. The engine gives the place of `on` in `app.on(…)`, so
 *  calls that are chained on one another are told apart. */
export function findCall(text: string, calls: Calls, line: number, column: number): string | null {
  const at = offsetOf(text, line, column);
  const found = calls.find(({ callee }) => nameStart(callee) === at);
  return found === undefined ? null : text.slice(found.start, found.end);
}

function nameStart(callee: Node): number {
  if (callee.type === "MemberExpression") return callee.property.start;
  return callee.start;
}

function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let left = line - 1; left > 0; left--) {
    const end = /\r\n|[\n\r\u2028\u2029]/g;
    end.lastIndex = start;
    const match = end.exec(text);
    if (match === null) return -1;
    start = match.index + match[0].length;
  }
  return start + column - 1;
}
