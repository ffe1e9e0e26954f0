// The params of a job as a shell gives them: as text, in a file, or on standard input.
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { DaybookError, invalid } from "../core/error.ts";
import { parseJson, type Json } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";

export async function readParams(given: string | undefined): Promise<Json> {
  if (given === undefined) return {};
  if (given === "-") return parseJson(await readAll(process.stdin), { what: "params" });
  if (!given.startsWith("@")) return parseJson(given, { what: "params" });
  return parseJson(await readFile(given.slice(1)), { what: "params" });
}

async function readFile(path: string): Promise<string> {
  try {
    return await readAll(createReadStream(path));
  } catch (cause) {
    const code: unknown = Error.isError(cause) ? Reflect.get(cause, "code") : undefined;
    if (code === "ENOENT") throw new DaybookError("not_found", `there is no file ${quote(path)} to read params from`);
    if (typeof code === "string" && code.startsWith("E")) {
      throw invalid(`params cannot be read from ${quote(path)}: ${code}`, { cause });
    }
    throw cause;
  }
}

// A pipe has no end that we know of, so it is measured while it comes.
async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > limits.jsonBytesMax) {
      throw invalid(`params are more than ${limits.jsonBytesMax} bytes; keep the bulk in a file and pass its path`);
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}
