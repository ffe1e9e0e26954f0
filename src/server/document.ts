// What the server says of itself: the document of its API.
import { packageVersion } from "../core/version.ts";
import { everyVerb } from "../verbs/table.ts";
import type { Outputs } from "../verbs/wire.ts";
import type { Add } from "./book-routes.ts";
import { headersOfAll } from "./guard.ts";
import { openapi } from "./openapi.ts";

export function addDocument(add: Add, { prefix, outputs }: { prefix: string; outputs: Outputs }): void {
  let text: Promise<string> | undefined;
  const make = async (): Promise<string> =>
    JSON.stringify(openapi(await everyVerb(), { version: packageVersion(), outputs, prefix }));
  add("GET", "/openapi.json", async () => {
    text ??= make();
    return new Response(await text, { headers: { ...headersOfAll, "content-type": "application/json" } });
  });
}
