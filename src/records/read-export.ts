// The lines of an export, read as a whole before anything is done with them. A list without a header was made by hand; an export says
// in its last line how many lines it has and what their hash is.
import { createHash } from "node:crypto";
import { invalid, type DaybookError } from "../core/error.ts";
import { isObject } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { parseJson } from "../core/parse-json.ts";
import { quote } from "../core/quote.ts";
import { pace } from "../storage/slices.ts";
import { exportFormat, exportVersion } from "./export.ts";

export type GivenLine = { readonly number: number; readonly line: Readonly<Record<string, unknown>> };

type Given = { readonly history: boolean; readonly lines: readonly GivenLine[] };

type End = { readonly lines: unknown; readonly hash: unknown };

export async function readExport(
  source: AsyncIterable<string> | Iterable<string>,
  allowTruncated: boolean,
): Promise<Given> {
  // A text is a list of letters, not of lines.
  if (typeof source !== "object" || !(Symbol.iterator in Object(source) || Symbol.asyncIterator in Object(source))) {
    throw invalid(`import takes the lines that an export gave, not ${quote(source)}`);
  }
  const lines: GivenLine[] = [];
  const hash = createHash("sha256");
  let header: Readonly<Record<string, unknown>> | undefined;
  let end: End | undefined;
  // The last line of a file that was cut off is seldom whole, so a line is only blamed when another one follows.
  let broken: { readonly number: number; readonly error: unknown } | undefined;
  let number = 0;
  const turn = pace();
  for await (const text of source) {
    number++;
    if (typeof text !== "string") throw invalid(`line ${number} is ${quote(text)}: import takes each line as a text`);
    if (text.trim() === "") continue;
    await turn(text);
    if (broken !== undefined) throw broken.error;
    if (end !== undefined)
      throw invalid(`line ${number} comes after the trailer of the export: remove it, or export again`);
    let line: Readonly<Record<string, unknown>>;
    try {
      line = toObject(text, number);
    } catch (error) {
      broken = { number, error };
      continue;
    }
    if (number === 1 && line["format"] !== undefined) header = checkHeader(line, allowTruncated);
    else if (header !== undefined && isObject(line["end"]))
      end = { lines: line["end"]["lines"], hash: line["end"]["hash"] };
    else lines.push({ number, line });
    // A program on its way may have ended the lines in its own manner.
    if (end === undefined) hash.update(`${text.replace(/[\r\n]+$/, "")}\n`);
  }
  const history = header?.["history"] === true;
  const isSealed = header !== undefined && header["version"] === exportVersion;
  // Half a history would end in half a commit.
  if (isSealed && (history || !allowTruncated)) {
    if (end === undefined) throw cutOff(number, history);
    if (broken === undefined) checkEnd(end, lines.length, hash.digest("hex"), history);
  }
  if (broken !== undefined && (header === undefined || !allowTruncated)) throw broken.error;
  return { history, lines };
}

function toObject(text: string, number: number): Readonly<Record<string, unknown>> {
  const line = parseJson(text, { what: `line ${number}`, bytesMax: 2 * limits.jsonBytesMax });
  if (!isObject(line)) throw invalid(`line ${number} is not an object`);
  return line;
}

function checkHeader(
  line: Readonly<Record<string, unknown>>,
  allowTruncated: boolean,
): Readonly<Record<string, unknown>> {
  const { format, version } = line;
  if (format === exportFormat && version === exportVersion) return line;
  if (format === exportFormat && version === 1) {
    if (allowTruncated) return line;
    throw invalid(
      `the export is of version 1, which has no trailer, so nothing tells whether it is whole: export it again, or import it with allowTruncated`,
    );
  }
  throw invalid(
    `line 1 says it is ${JSON.stringify(format)} ${JSON.stringify(version)}: only ${exportFormat} ${exportVersion} can be read`,
  );
}

function cutOff(number: number, history: boolean): DaybookError {
  const advice = history ? "export it again" : "export it again, or import what is left with allowTruncated";
  return invalid(
    `the export was cut off after line ${number}: its trailer is missing. Nothing was imported; ${advice}`,
    {
      details: { line: number },
    },
  );
}

function checkEnd(end: End, lines: number, hash: string, history: boolean): void {
  if (end.lines === lines && end.hash === hash) return;
  const what =
    end.lines === lines
      ? "its lines were changed"
      : `it has ${lines} lines where its trailer says ${String(end.lines)}`;
  const advice = history ? "export it again" : "export it again, or import it as it is with allowTruncated";
  throw invalid(`the export is not what was written: ${what}. Nothing was imported; ${advice}`, {
    details: { lines, expected: end.lines },
  });
}
