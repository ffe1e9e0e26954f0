// What the server says of itself: the document of its API, and a page for who comes by with a browser.
import { packageVersion } from "../core/version.ts";
import { everyVerb } from "../verbs/table.ts";
import type { Outputs } from "../verbs/wire.ts";
import type { Add, Router } from "./book-routes.ts";
import { headersOfAll } from "./guard.ts";
import { openapi } from "./openapi.ts";

export function addDocument(router: Router, add: Add, { prefix, outputs }: { prefix: string; outputs: Outputs }): void {
  let text: Promise<string> | undefined;
  const make = async (): Promise<string> =>
    JSON.stringify(openapi(await everyVerb(), { version: packageVersion(), outputs, prefix }));
  add("GET", "/openapi.json", async () => {
    text ??= make();
    return new Response(await text, { headers: { ...headersOfAll, "content-type": "application/json" } });
  });
  router.get(prefix === "" ? "/" : prefix, () => page(prefix));
  if (prefix !== "") router.get(`${prefix}/`, () => page(prefix));
}

function page(prefix: string): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Daybook</title>
<h1>Daybook</h1>
<p>This server is up. Its API is described by <a href="${prefix}/api/v1/openapi.json">openapi.json</a>;
<a href="${prefix}/api/v1/run-overview">run-overview</a> says what ran, <a href="${prefix}/api/v1/jobs">jobs</a> lists jobs.</p>
</html>`;
  return new Response(html, { headers: { ...headersOfAll, "content-type": "text/html; charset=utf-8" } });
}
