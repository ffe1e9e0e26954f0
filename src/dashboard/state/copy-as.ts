// What a page asks, as it would be asked from elsewhere: by the command line, by curl, by the typed client.
import type { VerbInput, VerbKey } from "../../client/verbs.ts";
import { plainNouns } from "../../client/routes.ts";
import { commandLine, shellWord } from "./command-line.ts";
import { prefix, requestFor, routeOf, tenant } from "./book.ts";

type Asked<Key extends VerbKey> = { readonly verb: Key; readonly input: VerbInput<Key> };

export function asCommand<Key extends VerbKey>({ verb, input }: Asked<Key>): string {
  return commandLine(verb, fieldsOf(input), {
    of: routeOf(verb),
    server: location.origin + prefix,
    tenant: tenant.value,
  });
}

export function asCurl<Key extends VerbKey>({ verb, input }: Asked<Key>): string {
  const { method, path, body } = requestFor(verb, input);
  const url = shellWord(location.origin + prefix + path);
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${url}`,
    '  -H "Authorization: Bearer $DAYBOOK_TOKEN"',
  ];
  if (tenant.value !== null) lines.push(`  -H ${shellWord(`Daybook-Tenant: ${tenant.value}`)}`);
  if (body !== undefined) lines.push('  -H "Content-Type: application/json"', `  -d ${shellWord(body)}`);
  return lines.join(" \\\n");
}

export function asTypeScript<Key extends VerbKey>({ verb, input }: Asked<Key>): string {
  const [noun = "", name = ""] = verb.split(".");
  const isPlain = plainNouns.some((plain) => plain === noun);
  const { places } = routeOf(verb);
  const given = fieldsOf(input);
  const rest = [...given].filter(([field]) => !places.includes(field));
  const args = places.map((place) => JSON.stringify(given.get(place)));
  if (rest.length > 0)
    args.push(`{ ${rest.map(([field, value]) => `${field}: ${JSON.stringify(value)}`).join(", ")} }`);
  const whose = tenant.value === null ? "" : `.tenant(${JSON.stringify(tenant.value)})`;
  return [
    'import { connect } from "daybook/client";',
    "",
    `const book = connect(${JSON.stringify(location.origin + prefix)}, { token: process.env.DAYBOOK_TOKEN ?? "" })${whose};`,
    `const answer = await book.${isPlain ? "" : `${noun}.`}${name}(${args.join(", ")});`,
  ].join("\n");
}

/** Where the same stands as JSON, for what is read. */
export function asLink<Key extends VerbKey>({ verb, input }: Asked<Key>): string | undefined {
  const { method, path } = requestFor(verb, input);
  return method === "GET" ? prefix + path : undefined;
}

function fieldsOf(input: object): Map<string, unknown> {
  return new Map(Object.entries(input).filter(([, value]) => value !== undefined && value !== ""));
}
