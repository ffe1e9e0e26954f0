// GET /openapi.json: the document of this server, of this version.
import { readFile } from "node:fs/promises";
import { everyVerb } from "../verbs/table.ts";
import type { Outputs } from "../verbs/wire.ts";
import { openapi } from "./openapi.ts";

/** `prefix`: the path below which the book stands. */
export async function describeServer(outputs: Outputs, prefix: string): Promise<string> {
  const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  return JSON.stringify(openapi(await everyVerb(), { version, outputs, prefix }));
}
