// The dashboard's files: a page, and what it loads. They hold no data, so nobody need say who they are to get them.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import type { Router } from "./book-routes.ts";
import { headersOfAll } from "./guard.ts";

type File = { readonly type: string; readonly bytes: Uint8Array<ArrayBuffer>; readonly gzip: Uint8Array<ArrayBuffer> };

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Scripts and styles of this server alone, and data from it alone; nothing inline. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = { ...headersOfAll, "content-security-policy": policy, vary: "accept-encoding" };

/** What stands at these belongs to others, also where it is not found. */
const others = ["api", "books", "health", "login", "mcp", "metrics"];

/** Every address that is nobody else's is a page of the dashboard, which knows what to show there. */
export function addDashboardFiles(router: Router, { prefix }: { readonly prefix: string }): void {
  const files = readFiles();
  const page = files.get("index.html");
  const html = page === undefined ? unbuilt(prefix) : new TextDecoder().decode(page.bytes);
  const own = fileOf(".html", new TextEncoder().encode(html.replace('<base href="/"', `<base href="${prefix}/"`)));

  if (prefix !== "") router.get(prefix, ({ req }) => answer(own, req.raw, "no-cache"));
  router.get(`${prefix}/*`, async ({ req }, next) => {
    const path = new URL(req.url).pathname.slice(prefix.length + 1);
    const file = files.get(path);
    if (file !== undefined && path !== "index.html") {
      return answer(file, req.raw, path.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache");
    }
    const [first = ""] = path.split("/");
    if (others.includes(first) || first === "assets") return next();
    if (path !== "" && !wantsPage(req.raw)) return next();
    return answer(own, req.raw, "no-cache");
  });
}

/** Where the sources run and nobody has built the dashboard. */
function unbuilt(prefix: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Daybook</title>
<h1>Daybook</h1>
<p>This server is up. Its dashboard is not built: "npm run dashboard" builds it. Its API is described by
<a href="${prefix}/api/v1/openapi.json">openapi.json</a>.</p>
</html>`;
}

function wantsPage(request: Request): boolean {
  return request.headers.get("accept")?.includes("text/html") === true;
}

function answer(file: File, request: Request, cache: string): Response {
  const isGzip = request.headers.get("accept-encoding")?.includes("gzip") === true;
  return new Response(isGzip ? file.gzip : file.bytes, {
    headers: {
      ...headers,
      "content-type": file.type,
      "cache-control": cache,
      ...(isGzip ? { "content-encoding": "gzip" } : {}),
    },
  });
}

/** By their paths. There are none where the dashboard was not built. */
function readFiles(): ReadonlyMap<string, File> {
  // Beside this file in the package, and in dist/ where the sources run.
  const folder = ["../dashboard", "../../dist/dashboard"]
    .map((each) => join(import.meta.dirname, each))
    .find((each) => existsSync(join(each, "assets")));
  if (folder === undefined) return new Map();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return new Map(
    entries.map((each) => {
      const path = join(each.parentPath, each.name);
      return [relative(folder, path).split(sep).join("/"), fileOf(extname(path), new Uint8Array(readFileSync(path)))];
    }),
  );
}

function fileOf(extension: string, bytes: Uint8Array<ArrayBuffer>): File {
  return { type: types[extension] ?? "application/octet-stream", bytes, gzip: new Uint8Array(gzipSync(bytes)) };
}
