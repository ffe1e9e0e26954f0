// The routes that no verb stands behind, as the document of the API describes them. Whoever adds a route to the app that is not made
// from a verb says so here; a test compares both.
import type { Schema } from "../verbs/field.ts";

export type ExtraRoute = {
  readonly summary: string;
  readonly description?: string;
  /** Nobody need say who they are. */
  readonly open?: true;
  /** Who may; without it, everybody whom the server knows. */
  readonly role?: "read" | "operate" | "admin";
  readonly parameters?: readonly Schema[];
  readonly body?: Schema;
  /** The answers by status; a problem need not be named. */
  readonly answers: { readonly [status: number]: Answered };
};

type Answered = {
  readonly description: string;
  /** The content by its type. Without it there is none. */
  readonly content?: { readonly [type: string]: Schema };
};

const text = { type: "string" };

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties, required: Object.keys(properties) };
}

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}

const names = orNull({ type: "array", items: text });
const caller = { name: text, tenant: orNull(text), role: text, queues: names, names };

function state(word: string): ExtraRoute["answers"] {
  return { 200: { description: "Yes.", content: { "application/json": object({ status: { const: word } }) } } };
}

function scheduler(summary: string): ExtraRoute {
  const status = object({
    status: { enum: ["running", "stopped"] },
    session: orNull(text),
    running: { type: "integer" },
  });
  return { summary, role: "admin", answers: { 200: { description: "Now.", content: { "application/json": status } } } };
}

/** By method and whole path. */
export const extraRoutes: { readonly [route: string]: ExtraRoute } = {
  "GET /health/live": { summary: "say whether the process answers", open: true, answers: state("live") },
  "GET /health/ready": {
    summary: "say whether the book can be used",
    description: "503 while it cannot, and while the server is ending.",
    open: true,
    answers: state("ready"),
  },
  "GET /metrics": {
    summary: "print numbers about the book for Prometheus",
    role: "read",
    answers: { 200: { description: "The exposition format of Prometheus.", content: { "text/plain": text } } },
  },
  "GET /api/v1/openapi.json": {
    summary: "print this document",
    open: true,
    answers: { 200: { description: "OpenAPI 3.1.", content: { "application/json": { type: "object" } } } },
  },
  "GET /api/v1/stream": {
    summary: "follow what happens, as named facts with ids and counters",
    description: `Server-sent events. The event's name is that of the fact, its id says where to go on, and its data is an object in JSON.
A connection that breaks is resumed by Last-Event-ID without a gap; where too much has happened since, reset says so.`,
    role: "read",
    parameters: [
      {
        name: "topic",
        in: "query",
        description: "only facts of this name, such as run.ended; may be given several times",
        schema: { type: "array", items: text },
      },
      { name: "Last-Event-ID", in: "header", description: "go on after this id", schema: text },
    ],
    answers: { 200: { description: "The facts, for as long as you listen.", content: { "text/event-stream": text } } },
  },
  "GET /": {
    summary: "a page that says that the server is up",
    open: true,
    answers: { 200: { description: "HTML.", content: { "text/html": text } } },
  },
  "POST /mcp": {
    summary: "call the verbs as tools of an assistant, by the Model Context Protocol over streamable HTTP",
    description: "Each request is answered by itself: there is no stream to listen to and no session to end.",
    body: { description: "A message of JSON-RPC 2.0, or several.", anyOf: [{ type: "object" }, { type: "array" }] },
    answers: {
      200: { description: "The answers.", content: { "application/json": {} } },
      202: { description: "There was nothing to answer." },
    },
  },
  "POST /api/v1/login": {
    summary: "give a token and get a cookie for it",
    open: true,
    body: { type: "object", properties: { token: text }, required: ["token"], additionalProperties: false },
    answers: {
      200: {
        description: "Who you are. The cookie daybook_login is set.",
        content: { "application/json": object(caller) },
      },
    },
  },
  "GET /login/{secret}": {
    summary: "log in by a link that works once",
    open: true,
    parameters: [{ name: "secret", in: "path", required: true, schema: text }],
    answers: { 303: { description: "The cookie daybook_login is set, and you are sent to the dashboard." } },
  },
  "GET /api/v1/caller": {
    summary: "say who you are",
    answers: { 200: { description: "You.", content: { "application/json": object(caller) } } },
  },
  "GET /api/v1/scheduler/status": scheduler("say whether this process works on the book"),
  "POST /api/v1/scheduler/start": scheduler("begin to work on the book in this process"),
  "POST /api/v1/scheduler/stop": scheduler("stop working on the book in this process"),
  "POST /api/v1/logout": {
    summary: "forget the cookie",
    answers: { 204: { description: "The cookie is of no use any more." } },
  },
};
