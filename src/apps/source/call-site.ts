// Where in the user's code a registration was made, taken from the stack when it is made. Nothing is read or parsed here.
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { getCallSites } from "node:util";

export type CallSite = {
  /** A path, as it runs: the compiled file where there is one. Null when it was made by code that is in no file. */
  readonly file: string | null;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  /** The code itself was made while the program ran (eval): the place is where that happened. */
  readonly made: boolean;
};

const nowhere: CallSite = { file: null, line: 0, column: 0, made: true };

/** This room, in src or in dist: its own frames are not what is looked for. */
const room = new URL("../", import.meta.url).href;

const framesMax = 30;

/** The first place on the stack outside of this room. */
export function callSite(): CallSite {
  try {
    const frames = getCallSites(framesMax, { sourceMap: false });
    const from = frames.findIndex(({ scriptName }) => !scriptName.startsWith(room));
    if (from < 0) return nowhere;
    const made = !isFile(frames[from]?.scriptName ?? "");
    const frame = frames.slice(from).find(({ scriptName }) => isFile(scriptName));
    if (frame === undefined) return nowhere;
    return { file: pathOf(frame.scriptName), line: frame.lineNumber, column: frame.columnNumber, made };
  } catch {
    return nowhere;
  }
}

function isFile(script: string): boolean {
  return script.startsWith("file:") || script.startsWith(sep);
}

// A file that was loaded anew has a query after its name.
function pathOf(script: string): string {
  if (!script.startsWith("file:")) return script;
  const url = new URL(script);
  url.search = "";
  url.hash = "";
  return fileURLToPath(url);
}

/** `apps/lights.ts:42`, from the working folder if the file is inside it. */
export function locationOf({ file, line }: Pick<CallSite, "file" | "line">): string {
  if (file === null) return "<unknown>";
  const short = relative(process.cwd(), file);
  return `${short === "" || short.startsWith("..") ? file : short.replaceAll(sep, "/")}:${line}`;
}
