// The document of the API, OpenAPI 3.1, made from the table of verbs and from the schemas of their answers.
import { errorCodes } from "../core/daybook-error.ts";
import type { Field, Schema } from "../verbs/field.ts";
import { apiPrefix, readRoute, type Route } from "../verbs/route.ts";
import { nounNames, nounOf, type NounName } from "../verbs/table.ts";
import { inputSchema, type Verb } from "../verbs/verb.ts";
import type { Outputs } from "../verbs/wire.ts";
import type { Alias } from "./aliases.ts";
import { aliasRoutes } from "./routes.ts";
import { extraRoutes, type ExtraRoute } from "./extra-routes.ts";
import { roleFor } from "./policy.ts";

/** What the document says of the server that gives it. */
export type Info = {
  readonly version: string;
  readonly outputs: Outputs;
  /** The path below which the server stands. */
  readonly prefix?: string;
};

type Operation = { readonly [word: string]: unknown };
type Paths = Record<string, Record<string, Operation>>;

/** Times are texts on the wire; in `outputs` they are what the library gives. */
export function openapi(
  table: readonly (readonly [key: string, verb: Verb])[],
  { version, outputs, prefix = "" }: Info,
): Schema {
  const paths: Paths = {};
  const add = (method: string, path: string, operation: Operation): void => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
  };
  for (const [key, verb] of table) {
    const route = readRoute(verb);
    if (route === undefined) continue;
    add(route.method, apiPrefix + route.path, operationOf(key, verb, route, outputs.outputs[key] ?? {}));
    for (const { alias, ...other } of aliasRoutes([{ ...route, key, verb }])) {
      const operation = operationOf(key, verb, other, outputs.outputs[key] ?? {});
      add(alias.method, apiPrefix + alias.path, asAlias(operation, alias));
    }
  }
  for (const [route, said] of Object.entries(extraRoutes)) {
    const [method = "", path = ""] = route.split(" ");
    add(method, path, extraOperation(route, said));
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Daybook",
      version,
      description: "Jobs, schedules, events, HTTP calls and records of a book, over HTTP. See docs/http.md.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: prefix === "" ? "/" : prefix, description: "The server that gave this document." }],
    security: [{ bearer: [] }, { cookie: [] }],
    tags: [...nounNames.map(tagOf), { name: "server", description: "What is about the server itself." }],
    paths: Object.fromEntries(Object.entries(paths).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    components: components(usedBy(paths, outputs)),
  };
}

function tagOf(name: NounName): Schema {
  const { about, more } = nounOf(name);
  return { name, description: more === undefined ? about : `${about}. ${more.replaceAll("\n", " ")}` };
}

function operationOf(key: string, verb: Verb, route: Route, answer: Schema): Operation {
  const of = {
    method: route.method,
    changes: route.method !== "GET",
    revisions: Object.hasOwn(verb.input, "ifRevision"),
  };
  const body = bodyOf(verb, route);
  return {
    operationId: key,
    tags: [key.split(".")[0] ?? ""],
    summary: verb.about,
    ...(verb.more === undefined ? {} : { description: verb.more }),
    ...marksOf(verb),
    parameters: [
      ...route.inPath.map((name) => parameterOf(name, "path", verb.input[name])),
      ...route.inQuery.map((name) => parameterOf(name, "query", verb.input[name])),
      parameter("Daybook-Tenant"),
      ...(of.changes ? [parameter("Idempotency-Key")] : []),
      ...(of.revisions ? [parameter("If-Match")] : []),
      ...(!of.changes && isPlainJson(verb) ? [parameter("If-None-Match")] : []),
    ],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: { ...answersOf(verb, answer, of.changes), "4XX": problemAnswer, "5XX": problemAnswer },
  };
}

/** The same under another name, for the tenant that its path names. */
function asAlias(operation: Operation, { method, path, key, accepted }: Alias): Operation {
  const [id, tenant] = [
    `${method} ${apiPrefix}${path}`,
    { name: "tenant", in: "path", required: true, schema: { type: "string" } },
  ];
  const parameters = [tenant, ...(operation["parameters"] as Operation[]).filter((each) => each["name"] !== "tenant")];
  const { 200: answer, ...others } = operation["responses"] as { 200: Operation };
  const location = { Location: { description: "Where it stands.", schema: { type: "string" } } };
  const found = { ...answer, headers: { ...(answer["headers"] as Operation | undefined), ...location } };
  const responses = accepted === true ? { 202: found, ...others } : operation["responses"];
  return { ...operation, operationId: id, summary: `the same as ${key}`, parameters, responses };
}

/** What is special about a verb, for programs that read the document. */
function marksOf(verb: Verb): Schema {
  return {
    "x-daybook-role": roleFor(verb),
    ...(verb.of === undefined ? {} : { "x-daybook-of": verb.of }),
    ...(verb.destroys === undefined ? {} : { "x-daybook-destroys": verb.destroys === true ? "apply" : verb.destroys }),
    ...(verb.background === undefined ? {} : { "x-daybook-background": true }),
    "x-codeSamples": verb.examples.map((each) => ({ lang: "Shell", source: `daybook ${each}` })),
  };
}

function isPlainJson({ text, lines, stream }: Verb): boolean {
  return (text ?? lines ?? stream) === undefined;
}

function parameter(name: keyof typeof headerParameters): Schema {
  return { $ref: `#/components/parameters/${name}` };
}

function parameterOf(name: string, place: "path" | "query", field: Field | undefined): Schema {
  if (field === undefined) throw new Error(`a route names {${name}}, which is no field of its verb`);
  const { description, ...schema } = field.schema;
  const needed = place === "path" || !field.maybe ? { required: true } : {};
  const said = { name, in: place, ...(description === undefined ? {} : { description }), ...needed };
  // An object in a query is one text of JSON.
  return isObject(field) ? { ...said, content: { "application/json": { schema } } } : { ...said, schema };
}

function isObject({ kind }: Field): boolean {
  return kind === "json" || kind === "headers" || kind === "rate";
}

function bodyOf(verb: Verb, { inBody }: Route): Schema | undefined {
  if (inBody.length === 0) return undefined;
  const { properties, required, ...schema } = inputSchema(verb);
  const within = ([name]: readonly [string, unknown]): boolean => inBody.includes(name);
  const needed = (required as string[]).filter((name) => inBody.includes(name));
  const mine = Object.fromEntries(Object.entries(properties as Record<string, Schema>).filter(within));
  const content = { "application/json": { schema: { ...schema, properties: mine, required: needed } } };
  return { required: needed.length > 0, content };
}

function answersOf(verb: Verb, answer: Schema, changes: boolean): Record<string, Schema> {
  const schema = wired(answer) as Schema;
  if (verb.text === true) return { 200: { description: "The text.", content: { "text/plain": { schema: text } } } };
  if (verb.lines === true) {
    const lines = { schema: text, "x-daybook-line": schema };
    return { 200: { description: "One line of JSON each.", content: { "application/jsonl": lines } } };
  }
  if (verb.stream === true) {
    const events = { schema: text, "x-daybook-item": schema };
    return {
      200: {
        description: "Server-sent events, each with an item as its data.",
        content: { "text/event-stream": events },
      },
    };
  }
  const replayed = changes ? { "Idempotency-Replayed": { $ref: "#/components/headers/Idempotency-Replayed" } } : {};
  const headers = changes ? replayed : { ETag: { $ref: "#/components/headers/ETag" } };
  const done = { description: "Done.", headers, content: { "application/json": { schema } } };
  return {
    ...(answer["type"] === "null" ? { 204: { description: "Done." } } : { 200: done }),
    ...(changes ? {} : { 304: { description: "What you have is still so." } }),
    ...(verb.background !== undefined ? { 202: { $ref: "#/components/responses/Begun" } } : {}),
  };
}

const text = { type: "string" };
const problemAnswer = { $ref: "#/components/responses/Problem" };

/** An answer as it is on the wire: a time is a text there. */
function wired(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(wired);
  if (typeof schema !== "object" || schema === null) return schema;
  if ("x-time" in schema) {
    const { type: _type, "x-time": _mark, ...rest } = schema as Record<string, unknown>;
    return { type: "string", format: "date-time", ...rest };
  }
  return Object.fromEntries(Object.entries(schema).map(([word, each]) => [word, wired(each)]));
}

function extraOperation(route: string, { summary, description, role, ...said }: ExtraRoute): Operation {
  const answers = Object.entries(said.answers).map(([status, { description: what, content }]) => {
    const kinds = Object.entries(content ?? {}).map(([type, schema]) => [type, { schema }]);
    return [
      status,
      { description: what, ...(content === undefined ? {} : { content: Object.fromEntries(kinds) as Schema }) },
    ];
  });
  return {
    operationId: route,
    tags: ["server"],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(role === undefined ? {} : { "x-daybook-role": role }),
    ...(said.open === true ? { security: [] } : {}),
    ...(said.parameters === undefined ? {} : { parameters: said.parameters }),
    ...(said.body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: said.body } } } }),
    responses: { ...(Object.fromEntries(answers) as Schema), "4XX": problemAnswer, "5XX": problemAnswer },
  };
}

const headerParameters = {
  "Daybook-Tenant": {
    description: "The tenant that is meant. Only a token of the whole book may name one; another token has its own.",
    schema: { type: "string", minLength: 1, maxLength: 200 },
  },
  "Idempotency-Key": {
    description: `Anything that is new for each thing you want done, such as a UUID. The same key with the same request is answered with
the kept reply and done once; with another request it is a conflict.`,
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  "If-Match": {
    description: "Only if this is still the revision: the same as ifRevision.",
    schema: text,
  },
  "If-None-Match": { description: "The ETag of what you have: 304 if it is still so.", schema: text },
} as const;

/** The schemas to which these lead; others belong to verbs that only the command line has. */
function usedBy(paths: Paths, { defs }: Outputs): Outputs["defs"] {
  const used = new Set<string>();
  const follow = (schema: unknown): void => {
    for (const [, name = ""] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name) || !Object.hasOwn(defs, name)) continue;
      used.add(name);
      follow(defs[name]);
    }
  };
  follow([paths, { $ref: "#/components/schemas/Operation" }]);
  return Object.fromEntries(Object.entries(defs).filter(([name]) => used.has(name)));
}

function components(defs: Outputs["defs"]): Schema {
  const schemas = { ...(wired(defs) as Record<string, Schema>), Problem: problemSchema() };
  const operation = Object.hasOwn(defs, "Operation") ? { $ref: "#/components/schemas/Operation" } : { type: "object" };
  return {
    securitySchemes: {
      bearer: { type: "http", scheme: "bearer", description: "A token: daybook token create prints one." },
      cookie: { type: "apiKey", in: "cookie", name: "daybook_login", description: "What a login sets, for browsers." },
    },
    parameters: Object.fromEntries(
      Object.entries(headerParameters).map(([name, said]) => [name, { name, in: "header", ...said }]),
    ),
    headers: {
      ETag: { description: "Says what was answered; give it as If-None-Match next time.", schema: text },
      "Idempotency-Replayed": {
        description: "The reply is the kept one of an earlier request.",
        schema: { const: "true" },
      },
      Location: { description: "Where to look at the operation.", schema: text },
      "Retry-After": { description: "How many seconds to wait.", schema: { type: "string", pattern: "^[0-9]+$" } },
    },
    responses: {
      Problem: {
        description: "It was refused, or it failed; code says why.",
        headers: { "Retry-After": { $ref: "#/components/headers/Retry-After" } },
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
      Begun: {
        description: "It has begun, and goes on; look at the operation.",
        headers: { Location: { $ref: "#/components/headers/Location" } },
        content: { "application/json": { schema: operation } },
      },
    },
    schemas,
  };
}

function problemSchema(): Schema {
  const meanings = Object.entries(errorCodes).map(([code, { status, meaning }]) => `${code} (${status}): ${meaning}`);
  return {
    type: "object",
    description: "A problem as RFC 9457 has it.",
    properties: {
      type: text,
      title: text,
      status: { type: "integer", minimum: 400, maximum: 599 },
      code: { type: "string", enum: Object.keys(errorCodes), description: meanings.join(" ") },
      detail: { type: "string", description: "What was wrong, with the value, and what to do." },
      details: { type: "object", description: "The same for programs: ids, limits, the current state." },
    },
    required: ["title", "status", "code", "detail"],
  };
}
