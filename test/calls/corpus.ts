// Requests as real webhooks and APIs want them, each with a secret in the place where it has one; and answers that repeat it as servers do.
import { gzipSync } from "node:zlib";
import type { SubmitOptions } from "../../src/index.ts";
import type { Answer } from "./target.ts";

/** A request with this secret to a server at this URL. */
type Form = (secret: string, server: string) => SubmitOptions;

const post = { json: { text: "hello" } } as const;
const inPath = (path: string): Form => {
  const [before = "", after = ""] = path.split("*");
  return (secret, server) => ({ url: server + before + secret + after, ...post });
};
const inHeader =
  (name: string, before = ""): Form =>
  (secret, server) => ({ url: `${server}/orders`, headers: { [name]: before + secret }, ...post });
const inJson =
  (of: (secret: string) => unknown): Form =>
  (secret, server) => ({ url: `${server}/orders`, json: of(secret) });
const inBody =
  (type: string, of: (secret: string) => string | Uint8Array): Form =>
  (secret, server) => ({
    url: `${server}/orders`,
    method: "POST",
    headers: { "content-type": type },
    body: of(secret),
  });

export const urls: readonly Form[] = [
  // Chat, automation and monitoring services, as their pages show them.
  ...["/services/T024BE7LD/B024BE7LE/*", "/workflows/T024BE7LD/A024BE7LF/393/*", "/bot110201543:*/sendMessage"].map(
    inPath,
  ),
  ...["/api/webhooks/1184390/*", "/api/webhooks/1184390/*/messages/17", "/api/webhooks/1184390/*?wait=true"].map(
    inPath,
  ),
  ...["/trigger/door_opened/with/key/*", "/trigger/door_opened/json/with/key/*", "/hooks/catch/123456/*/"].map(inPath),
  ...["/webhookb2/7a1b@9c2d/IncomingWebhook/*/0a1b", "/workflows/0a1b/triggers/manual/paths/invoke?sig=*"].map(inPath),
  ...["/v1/spaces/AAAA/messages?key=a&token=*", "/hooks/*", "/api/webhook/*", "/webhook/*/test", "/*"].map(inPath),
  ...["/integration/1/enqueue/*", "/v1/input/*", "/ping/*", "/ping/*/fail", "/api/push/*?status=up&msg=OK"].map(inPath),
  ...["/api/0/projects/a/b/hook/*/", "/sns/unsubscribe?Token=*", "/deploy/srv-1?key=*", "/build_hooks/*"].map(inPath),
  ...["/v1/integrations/deploy/prj_1/*", "/generic-webhook-trigger/invoke?token=*", "/job/a/build?token=*"].map(inPath),
  ...[
    "/tokens/*",
    "/secrets/*/rotate",
    "/api/keys/*",
    "/*/message",
    "/message?token=*",
    "/gotify/message?tokens=*",
  ].map(inPath),
  ...[
    "/upload?X-Amz-Signature=*&X-Amz-Date=20260115",
    "/blob?sv=2022&sig=*&se=2026",
    "/o/file?GoogleAccessId=a&Signature=*",
  ].map(inPath),
  ...[
    "/oauth/callback?code=*&state=x",
    "/reset?t=*",
    "/invite/*",
    "/feed.xml?auth=*",
    "/unlock;jsessionid=*",
    "/a/%61*",
    "/a;key=*/b",
    "//*",
    "/ü/*",
    "/?*",
  ].map(inPath),
];

export const headers: readonly Form[] = [
  ...[
    inHeader("authorization", "Bearer "),
    inHeader("Authorization", "token "),
    inHeader("x-custom", "Bearer "),
    inHeader("Cookie", "sid="),
  ],
  ...[
    "X-Api-Key",
    "X-ClientSecret",
    "X-RapidAPI-Key",
    "Ocp-Apim-Subscription-Key",
    "X-Gitlab-Token",
    "PRIVATE-TOKEN",
  ].map((name) => inHeader(name)),
  ...[
    "X-Hub-Signature-256",
    "X-Shopify-Access-Token",
    "X-Auth-User",
    "apikey",
    "X-CSRF",
    "X-Functions-Key",
    "api_password",
  ].map((name) => inHeader(name)),
];

/** Headers whose names say nothing. */
export const quietHeaders: readonly Form[] = [
  ...["X-Custom", "X-Trace", "If-Match", "User-Agent", "X-N", "Cache-Control", "Range", "Origin"].map((name) =>
    inHeader(name),
  ),
  inHeader("Accept", "application/vnd.hooks+json; key="),
  inHeader("Referer", "https://a.example/?t="),
];

export const bodies: readonly Form[] = [
  ...[
    inJson((secret) => ({ password: secret })),
    inJson((secret) => ({ password: { plain: secret } })),
    inJson((secret) => ({ user: { tokens: [secret] } })),
    inJson((secret) => ({ note: secret })),
    inJson((secret) => [["a", [secret]]]),
    inJson((secret) => ({ [secret]: 1 })),
    inJson((secret) => secret),
    inJson((secret) => ({ text: `hello ${secret} and goodbye` })),
    inJson((secret) => ({ nested: JSON.stringify({ apiKey: secret }) })),
  ],
  ...[
    inBody("application/x-www-form-urlencoded", (secret) => `user=ada&password=${secret}`),
    inBody("application/x-www-form-urlencoded", (secret) => `a=${secret}`),
    inBody("application/xml", (secret) => `<a><password>${secret}</password></a>`),
    inBody("text/xml", (secret) => `<a b="${secret}"/>`),
    inBody(
      "multipart/form-data; boundary=x",
      (secret) => `--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n${secret}\r\n--x--`,
    ),
    (secret: string, server: string): SubmitOptions => {
      const headers = { "content-type": `multipart/form-data; boundary=${secret}` };
      return { url: `${server}/orders`, method: "POST", headers, body: `--${secret}--` };
    },
    inBody("text/plain", (secret) => secret),
    inBody("application/octet-stream", (secret) => Buffer.concat([Buffer.from([0, 255]), Buffer.from(secret)])),
    inBody("application/json", (secret) => `{"broken": "${secret}`),
    inBody("application/json", (secret) => `{"pass\\u0077ord": "${secret}"}`),
    inBody("application/graphql", (secret) => `mutation { login(password: "${secret}") { id } }`),
    inBody("application/x-ndjson", (secret) => `{"a":1}\n{"token":"${secret}"}\n`),
    inBody("text/csv", (secret) => `name,pin\nada,${secret}\n`),
  ],
];

/** Answers that repeat a secret, each as one kind of server does. */
export function repeating(secret: string): readonly Answer[] {
  const base64 = Buffer.from(secret).toString("base64");
  const said = (type: string, body: string | Buffer, more: Record<string, string> = {}, code = 200): Answer => {
    return (_request, response) => void response.writeHead(code, { "content-type": type, ...more }).end(body);
  };
  return [
    (request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(request));
    },
    said("application/json", JSON.stringify({ password: { plain: secret }, token: secret })),
    said("application/json", JSON.stringify({ error: `invalid: ${secret}` }), {}, 400),
    said("text/html", `<p>${asHtml(secret)} ${secret}</p>`, {}, 403),
    said("application/octet-stream", Buffer.concat([Buffer.from([0]), Buffer.from(secret)])),
    said("text/plain", base64),
    said("text/plain", secret.toUpperCase(), {}, 500),
    said("text/plain", encodeURIComponent(secret).replaceAll("-", "%2D")),
    said("application/xml", `<password>${secret}</password>`),
    said("text/plain", "x".repeat(65_536 - 10) + secret),
    said("application/json", gzipSync(JSON.stringify({ secret })), { "content-encoding": "gzip" }),
    said("text/plain", "moved", { location: `/next/${secret}?token=${secret}` }, 302),
    said("text/plain", "ok", { "set-cookie": `session=${secret}; Path=/`, "x-echo": secret, etag: `"${secret}"` }),
    said(
      "text/plain",
      "ok",
      { [`x-${secret}`]: "a", server: secret, "x-request-id": secret, "retry-after": secret },
      503,
    ),
    said(`text/${secret}`, "ok"),
    (_request, response) => {
      response.writeHead(200, secret.replaceAll("\n", ""), { "content-type": "text/plain" });
      response.write(secret.slice(0, 12));
      response.end(secret.slice(12));
    },
    (_request, response) => void response.socket?.end(`HTTP/1.1 200 ${secret}\r\n${secret}\r\n\r\n`),
    (_request, response) => void response.socket?.end(`${secret}\r\n\r\n`),
  ];
}

/** How a text may be spelt where it is looked for. */
export function spellings(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  // Base64 of a part of a longer text begins at any of three places.
  const encoded = [0, 1, 2].map((skip) =>
    Buffer.concat([Buffer.alloc(skip), bytes])
      .toString("base64")
      .slice(4, -4),
  );
  return [secret, secret.toUpperCase(), bytes.toString("hex"), asHtml(secret), ...encoded];
}

function asHtml(secret: string): string {
  return Array.from(secret, (char) => `&#${char.charCodeAt(0)};`).join("");
}
