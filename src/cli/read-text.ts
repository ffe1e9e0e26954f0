// Text, such as the params of a job, as a shell gives it: as it is, in a file, or on standard input.
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";

/** The text itself, or that of the file or of standard input. */
export async function readText(given: string, what: string): Promise<string> {
  if (given === "-") return readAll(process.stdin, what);
  return given.startsWith("@") ? readFile(given.slice(1), what) : given;
}

async function readFile(path: string, what: string): Promise<string> {
  try {
    return await readAll(createReadStream(path), what);
  } catch (cause) {
    const code: unknown = Error.isError(cause) ? Reflect.get(cause, "code") : undefined;
    if (code === "ENOENT") throw new DaybookError("not_found", `there is no file ${quote(path)} to read ${what} from`);
    if (typeof code === "string" && code.startsWith("E")) {
      throw invalid(`${what} cannot be read from ${quote(path)}: ${code}`, { cause });
    }
    throw cause;
  }
}

// A pipe has no end that we know of, so it is measured while it comes.
async function readAll(stream: Readable, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > limits.jsonBytesMax) {
      throw invalid(`${what} has more than ${limits.jsonBytesMax} bytes; keep the bulk in a file and pass its path`);
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}
