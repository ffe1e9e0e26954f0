// The types of what a client can do: the verbs of the table with their fields and answers, as calls.
import type { Table } from "../verbs/table.ts";
import type { plainNouns, routes } from "./routes.ts";
import type { CallOptions } from "./send.ts";

type Routes = typeof routes;
export type NounName = Exclude<keyof Routes, PlainName>;
export type PlainName = (typeof plainNouns)[number];

/** A moment as callers give it: what an answer says, ISO 8601 with a zone, a Date, or a Temporal.Instant. */
export type Moment = number | string | Date | { readonly epochMilliseconds: number };

/** A definition, or the name that it would have. */
export type Named = string | { readonly name: string };

type RelationEnds = { readonly from: string; readonly to: string; readonly instance?: string };

type Route = { readonly [about in "places" | "times" | "durations" | "lists"]: readonly string[] } & {
  readonly answer: string;
};

type Like<T, R extends Route, Name> =
  | T
  | (Name extends R["times"][number] ? Moment : never)
  | (Name extends R["durations"][number] ? number : never)
  | (Name extends "type" ? Named : never)
  | (Name extends "key" ? (Name extends R["lists"][number] ? string | RelationEnds : never) : never);

type Input<V> = V extends { readonly run: (book: never, input: infer I, call: never) => unknown } ? I : never;

type Rest<I, R extends Route> = {
  readonly [Name in keyof I as Name extends R["places"][number] ? never : Name]: Like<I[Name], R, Name>;
};

type Places<I, R extends Route, Names extends readonly string[] = R["places"]> = {
  -readonly [At in keyof Names]: Names[At] extends keyof I ? Like<I[Names[At]], R, Names[At]> : never;
};

/** What stands in <> in the verb's words, in that order; then an object of the others. */
type Args<I, R extends Route> = [
  ...Places<I, R>,
  ...(Record<never, never> extends Rest<I, R>
    ? [input?: Rest<I, R>, options?: CallOptions]
    : [input: Rest<I, R>, options?: CallOptions]),
];

/** A page, and the way to all that come after it: `for await` goes through the rows of every page. */
export type Paged<Page extends { readonly items: readonly unknown[] }> = Promise<Page> &
  AsyncIterable<Page["items"][number]>;

type Reply<Answer, R extends Route> = R["answer"] extends "text"
  ? Promise<string>
  : Answer extends AsyncIterable<infer Item>
    ? AsyncIterable<Item>
    : Awaited<Answer> extends { readonly items: readonly unknown[] }
      ? Paged<Awaited<Answer>>
      : Promise<Awaited<Answer>>;

type Answer<V> = V extends { readonly run: (...all: never) => infer A } ? A : never;

type Method<V, R extends Route> = (...args: Args<Input<V>, R>) => Reply<Answer<V>, R>;

export type Noun<Name extends keyof Routes> = {
  readonly [Key in keyof Routes[Name] & keyof Table[Name]]: Routes[Name][Key] extends Route
    ? Method<Table[Name][Key], Routes[Name][Key]>
    : never;
};

/** `jobs.cancel`: a verb by its noun and name. */
export type VerbKey = {
  [Name in keyof Routes]: `${Name}.${keyof Routes[Name] & keyof Table[Name] & string}`;
}[keyof Routes];

type VerbOf<Key extends VerbKey> = Key extends `${infer Name}.${infer Verb}`
  ? Name extends keyof Table
    ? Verb extends keyof Table[Name]
      ? Table[Name][Verb]
      : never
    : never
  : never;

type RouteOf<Key extends VerbKey> = Key extends `${infer Name}.${infer Verb}`
  ? Name extends keyof Routes
    ? Verb extends keyof Routes[Name]
      ? Routes[Name][Verb] extends Route
        ? Routes[Name][Verb]
        : never
      : never
    : never
  : never;

type Given<I, R extends Route> = { readonly [Name in keyof I]: Like<I[Name], R, Name> };

/** What a verb takes, as one object of its fields. */
export type VerbInput<Key extends VerbKey> = Given<Input<VerbOf<Key>>, RouteOf<Key>>;

/** What a verb answers. */
export type VerbAnswer<Key extends VerbKey> = Awaited<Answer<VerbOf<Key>>>;
