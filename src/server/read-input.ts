// The input of a verb from a request: each field stands in one place, in the path, else in the query of a GET, else in the body.
import { invalid } from "../core/error.ts";
import { isPlain } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { parseJson } from "../core/parse-json.ts";
import { quote } from "../core/quote.ts";
import { checkInput } from "../verbs/verb.ts";
import { HttpRefusal } from "./problem.ts";
import type { VerbRoute } from "./routes.ts";

export type Input = Record<string, unknown>;

type Carried = {
  param(name: string): string;
  readonly url: string;
  readonly body: string;
  readonly also?: Input;
  /** What holds where it is not given. */
  readonly otherwise?: Input;
};

/** `param` gives a decoded part of the path. `body` is the text of a request that is no GET. */
export function readInput(
  { verb, method, inPath }: VerbRoute,
  { param, url, body, also = {}, otherwise = {} }: Carried,
): Input {
  const input: Input = {};
  if (method === "GET") readQuery(url, verb.input, inPath, input);
  else {
    if (url.includes("?")) throw invalid("a query is given to a route that takes none: put its fields into the body");
    readBody(body, inPath, input);
  }
  for (const name of inPath) input[name] = verb.input[name]?.fromText(param(name), name) ?? param(name);
  return checkInput(verb, { ...otherwise, ...input, ...also });
}

function readQuery(url: string, fields: VerbRoute["verb"]["input"], inPath: readonly string[], input: Input): void {
  const at = url.indexOf("?");
  if (at === -1) return;
  const end = url.indexOf("#", at);
  const query = new URLSearchParams(url.slice(at + 1, end === -1 ? undefined : end));
  for (const name of new Set(query.keys())) {
    if (inPath.includes(name))
      throw invalid(`${quote(name)} stands in the path of this route: leave it out of the query`);
    const texts = query.getAll(name);
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    // `checkInput` refuses what it does not know, with the nearest name.
    if (field === undefined) put(input, name, texts[0]);
    else if (field.fromTexts !== undefined) put(input, name, field.fromTexts(texts, name));
    else if (field.kind === "list")
      put(
        input,
        name,
        texts.flatMap((text) => field.fromText(text, name)),
      );
    else if (texts.length > 1) throw invalid(`${quote(name)} is given ${texts.length} times: give it once`);
    else put(input, name, field.fromText(texts[0] ?? "", name));
  }
}

function readBody(body: string, inPath: readonly string[], input: Input): void {
  if (body === "") return;
  const given = parseJson(body, { what: "the body", bytesMax: bodyBytesMax });
  if (!isPlain(given)) throw invalid(`the body is ${quote(given)}: give an object of fields`);
  for (const [name, value] of Object.entries(given)) {
    if (inPath.includes(name))
      throw invalid(`${quote(name)} stands in the path of this route: leave it out of the body`);
    put(input, name, value);
  }
}

// By assignment `__proto__` would set a prototype and be gone.
function put(input: Input, name: string, value: unknown): void {
  if (name === "__proto__") Object.defineProperty(input, name, { value, enumerable: true });
  else input[name] = value;
}

/** A value of the largest size and the fields around it. */
export const bodyBytesMax = limits.jsonBytesMax * 2;

/** The text of the body. More than `bodyBytesMax` is refused as soon as that is known, and nothing of it is kept. */
export async function readText(request: Request): Promise<string> {
  const { headers } = request;
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > bodyBytesMax) throw tooLarge();
  const type = headers.get("content-type");
  if (declared === "0" || (declared === null && request.body === null)) return "";
  // A request on a connection has a body to read, and nothing in it where its headers tell of none: curl -X POST sends such.
  if (declared === null && type === null && (await collect(request.body).catch(notWhole)).byteLength === 0) return "";
  if (type === null || !/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    throw new HttpRefusal(
      415,
      "invalid",
      `the body is ${type === null ? "of no named type" : quote(type)}: send application/json`,
    );
  }
  if (headers.has("content-encoding")) {
    throw new HttpRefusal(415, "invalid", "the body is compressed: send it as it is");
  }
  const bytes = await (declared === null ? collect(request.body) : request.arrayBuffer()).catch(notWhole);
  if (bytes.byteLength > bodyBytesMax) throw tooLarge();
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid("the body is no UTF-8 text: send JSON in UTF-8");
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

// Who does not say how much it is may send without end.
async function collect(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > bodyBytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Who hung up before the end of what was announced is at fault, and nothing of ours. */
function notWhole(error: unknown): never {
  throw error instanceof HttpRefusal
    ? error
    : invalid("the body ended before it was whole: send it again", { cause: error });
}

function tooLarge(): HttpRefusal {
  const advice = "keep the bulk in a file or a bucket and send its address";
  return new HttpRefusal(413, "invalid", `the body has more than ${bodyBytesMax} bytes: ${advice}`, {
    connection: "close",
  });
}
