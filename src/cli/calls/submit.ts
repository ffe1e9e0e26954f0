// daybook calls submit: makes a call from a shell.
import type { Command } from "commander";
import type { Method } from "../../calls/call.ts";
import type { SubmitOptions } from "../../calls/submit.ts";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { isoTime } from "../../core/time.ts";
import { readParams } from "../read-params.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
Headers and fields that hold secrets are kept sealed with the key in DAYBOOK_KEY; without it they
are refused. --json-body takes JSON, "@file", or "-" for standard input.

Example:
  $ daybook calls submit --book shop.db https://stock.example/reserve --json-body '{"orderId":"o-17"}' --in 5m --tag stock`;

type Options = {
  readonly method?: string;
  readonly header: readonly string[];
  readonly jsonBody?: string;
  readonly name?: string;
  readonly tag: readonly string[];
  readonly at?: string;
  readonly in?: string;
  readonly key?: string;
  readonly correlation?: string;
  readonly attempts?: string;
  readonly retry?: boolean;
  readonly timeout?: string;
};

const more = (value: string, list: readonly string[]): readonly string[] => [...list, value];

export function submitCall(group: Command): void {
  group
    .command("submit")
    .description("submit a call: an HTTP request that will be sent, now or later")
    .argument("<url>", "where it goes")
    .option("--method <method>", "GET, POST, PUT, DELETE or PATCH (default: GET, or POST with a body)")
    .option("--header <line>", 'a header, such as "accept: application/json"; may be given again', more, [])
    .option("--json-body <json>", "the body as JSON")
    .option("--name <name>", "what people call it")
    .option("--tag <tag>", "a tag to find it by; may be given again", more, [])
    .option("--at <time>", "not before this time, in ISO 8601")
    .option("--in <duration>", 'not before this long from now, such as "5m"')
    .option("--key <key>", "the same key and request again are the same call")
    .option("--correlation <id>", "the correlation id")
    .option("--attempts <n>", "how often it may be sent in total")
    .option("--retry", "try again after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and 10 h")
    .option("--timeout <duration>", "how long one attempt may take")
    .addHelpText("after", example)
    .action((url: string, options: Options, command: Command) =>
      withBook(command, changing, async (book) => {
        const made = await book.calls.submit(await toSubmit(url, options));
        const { dueAt, ...rest } = made;
        return {
          json: { ...rest, dueAt: isoTime(dueAt) },
          text: () => `${made.id} ${made.created ? `is due at ${isoTime(dueAt)}` : "was submitted before"}`,
        };
      }),
    );
}

async function toSubmit(url: string, options: Options): Promise<SubmitOptions> {
  const { method, header, jsonBody, name, tag, at, in: delay, key, correlation, attempts, retry, timeout } = options;
  return {
    url,
    headers: Object.fromEntries(header.map(readHeader)),
    tags: tag,
    ...(method === undefined ? {} : { method: method.toUpperCase() as Method }),
    ...(jsonBody === undefined ? {} : { json: await readParams(jsonBody) }),
    ...(name === undefined ? {} : { name }),
    ...(at === undefined ? {} : { at }),
    ...(delay === undefined ? {} : { in: delay }),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(correlation === undefined ? {} : { correlationId: correlation }),
    ...(attempts === undefined ? {} : { attempts: Number(attempts) }),
    ...(retry === true ? { retry: "standard" as const } : {}),
    ...(timeout === undefined ? {} : { timeout }),
  };
}

function readHeader(line: string): [string, string] {
  const at = line.indexOf(":");
  // The line is not shown: it may hold a token.
  if (at < 1) throw invalid(`--header ${quote(line.slice(0, 10))}… is not "name: value"`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}
