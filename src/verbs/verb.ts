// A verb is one operation whose input is data: what it is called, who may do it, what it takes, what it does and how a person
// reads its answer. Every way in is made from the table of verbs, and none of them is known here.
import type { Role } from "../access/token.ts";
import type { Book } from "../book/book.ts";
import type { WorkerGrant } from "../jobs/lease/lease.ts";
import { durationMs } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { isPlain } from "../core/json.ts";
import { nearest } from "../core/suggest.ts";
import type { Field, Fields, Given, Schema } from "./field.ts";
import type { Shown } from "./shown.ts";

export type { Role };

type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What a verb is told about the call itself. */
export type Call = {
  readonly signal: AbortSignal;
  /** The tenant that the caller named; null when it speaks for the whole book. */
  readonly tenant: string | null;
  /** How much of it is done, and of how much when that is known. It costs nothing, so it may be told of each thing. */
  progress?(done: number, total: number | null): void;
  /** Where a caller from elsewhere waits no longer than this, and then asks again. */
  readonly waitMsMax?: number;
  /** Of a remote worker: what its token lets it run, null being everything. Left out where no token is asked for. */
  readonly worker?: WorkerGrant;
};

/** How long a caller waits that asked for `timeout`, or for no limit. */
export function patienceOf(timeout: string | undefined, { waitMsMax }: Call): { readonly timeout?: string | number } {
  if (waitMsMax === undefined) return timeout === undefined ? {} : { timeout };
  return { timeout: timeout === undefined ? waitMsMax : Math.min(durationMs(timeout, "timeout"), waitMsMax) };
}

/** For what works in slices: how it is ended, and who is told how far it is. */
export function ofCall({ signal, progress }: Call): Pick<Call, "signal" | "progress"> {
  return { signal, ...(progress === undefined ? {} : { progress }) };
}

/** What is not an error, and yet not what was hoped for: something was found that should not be, it is too early, or it ended
 *  otherwise. */
export type Verdict = "found" | "open" | "otherwise";

export type Verb<F extends Fields = Fields, Answer = unknown> = Said<F, Answer> & {
  readonly role: Role;
  readonly input: F;
  readonly examples: readonly string[];
};

/** What a verb says of itself; the function that makes it says who may, and adds what its words say already. */
export type Said<F extends Fields, Answer> = {
  /** `jobs cancel <id>`: what stands in <> or [] is taken by its place, the other fields by their names. */
  readonly words: string;
  /** A GET only reads. What stands in {} comes from the path, the rest from the query of a GET, else from the body. Default: as its
   *  words say (`routeOf`); a verb that is `local` has no route. */
  readonly http?: `${Method} /${string}`;
  /** It is about all tenants. */
  readonly of?: "book";
  readonly about: string;
  /** What one should know before using it. */
  readonly more?: string;
  /** Default: none. */
  readonly input?: F;
  /** Default: its words, with an id where they have one. */
  readonly examples?: readonly string[];
  /** It names files of this machine or needs this process, so that only the command line has it. */
  readonly local?: true;
  /** Its answer is an AsyncIterable of items that come as they happen. */
  readonly stream?: true;
  /** Its answer is a text. */
  readonly text?: true;
  /** Its answer is an AsyncIterable of lines. */
  readonly lines?: true;
  /** It changes what cannot be had back, so it only reads the book and says what it would do unless `apply` is given. A name: it does
   *  so with that flag alone. */
  readonly destroys?: true | (string & keyof F);
  /** It may take minutes: a remote caller gets an operation to look at. The name of a field: not for the one thing that it names. */
  readonly background?: true | (string & keyof F);
  /** How the book is opened for it. Default: `read` for the role read, else `write`. `session`: it runs something here. */
  readonly needs?: "read" | "write" | "session";
  /** It removes files that the book keeps in a folder of its own: the command line is told which (`--files`). */
  readonly files?: true;
  /** It uses the definitions that files of this machine export, where they are: it `may` or `must`. `of` names those it needs. */
  readonly definitions?: "may" | "must";
  /** They are definitions of records; without this, of jobs. */
  readonly definitionKind?: "record";
  definitionsOf?(input: Given<F>): readonly string[];
  /** Checks what no single field can know. Throws `invalid`. */
  check?(input: Given<F>): void;
  run(book: Book, input: Given<F>, call: Call): Answer;
  show(answer: Item<Answer>, input: Given<F>): Shown;
  /** What a person is told besides, for which another verb of its noun is asked. */
  aside?(ask: Ask, answer: Item<Answer>): Promise<Shown>;
  verdict?(answer: Item<Answer>): Verdict | undefined;
};

/** Asks another verb where the first was asked: on the book, or on a server. */
export type Ask = <F extends Fields, Answer>(verb: Verb<F, Answer>, input: Given<F>) => Promise<Awaited<Answer>>;

/** What is shown: the answer, or one item of a stream. */
type Item<Answer> = Answer extends AsyncIterable<infer Each> ? Each : Awaited<Answer>;

export function read<const F extends Fields = Nothing, Answer = unknown>(said: Said<F, Answer>): Verb<F, Answer> {
  return made("read", said);
}

export function operate<const F extends Fields = Nothing, Answer = unknown>(said: Said<F, Answer>): Verb<F, Answer> {
  return made("operate", said);
}

export function admin<const F extends Fields = Nothing, Answer = unknown>(said: Said<F, Answer>): Verb<F, Answer> {
  return made("admin", said);
}

/** A verb that only reads, and whose answer is for an admin. */
export function forAdmins<F extends Fields, Answer>(of: Verb<F, Answer>): Verb<F, Answer> {
  return { ...of, role: "admin", needs: "read" };
}

/** Of a program elsewhere that runs jobs. It is always of a tenant. */
export function worker<const F extends Fields = Nothing, Answer = unknown>(said: Said<F, Answer>): Verb<F, Answer> {
  return made("worker", said);
}

export type Nothing = Record<never, never>;

/** An id as the examples show one. */
export const exampleId = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

function made<F extends Fields, Answer>(role: Role, said: Said<F, Answer>): Verb<F, Answer> {
  return {
    ...(said.local === true ? {} : { http: routeOf(role, said) }),
    examples: [said.words.replace("<id>", exampleId)],
    input: {} as F,
    ...said,
    role,
  };
}

/** `GET /jobs` for `jobs list`, `GET /jobs/{id}` for `jobs show <id>`, `POST /jobs/{id}/cancel` for `jobs cancel <id>`. */
function routeOf(role: Role, said: Pick<Verb, "words">): `${Method} /${string}` {
  const [noun, verb] = nameOf(said).split(" ");
  const [place] = placesOf(said).filter(({ needed, several }) => needed && !several);
  const parts = [noun, place && `{${place.name}}`, verb !== "list" && verb !== "show" && verb];
  return `${role === "read" ? "GET" : "POST"} /${parts.filter((part) => typeof part === "string").join("/")}`;
}

export function fieldsOf({ input }: Verb): [name: string, field: Field][] {
  return Object.entries(input);
}

/** The fields that are given by their place, in their order. */
export function placesOf({ words }: Pick<Verb, "words">): { name: string; needed: boolean; several: boolean }[] {
  return [...words.matchAll(/([<[])(\w+)(\.{3})?[>\]]/g)].map(([, open, name = "", dots]) => ({
    name,
    needed: open === "<",
    several: dots !== undefined,
  }));
}

/** The words before the first place: `jobs cancel`. */
export function nameOf({ words }: Pick<Verb, "words">): string {
  return words.replace(/ ?[<[].*$/, "");
}

/** The words of a shell and of an address: `keyScope` is `key-scope`. */
export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function inputSchema(of: Verb): Schema {
  const fields = fieldsOf(of);
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(fields.map(([name, { schema }]) => [name, schema])),
    required: fields.filter(([, each]) => !each.maybe).map(([name]) => name),
  };
}

/** Checks what a caller gave, before anything else happens. `called` says how the caller knows a field. */
export function checkInput(
  of: Verb,
  given: Record<string, unknown>,
  called: (name: string) => string = (name) => name,
): Record<string, unknown> {
  // Anything else has no fields of its own, so a promise or a Map would count as nothing given, which may mean everything.
  if (!isPlain(given)) throw invalid(`"${nameOf(of)}" is given ${quote(given)}: give an object of its fields`);
  const known = Object.keys(of.input);
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(of.input, name)) continue;
    const near = nearest(name, known);
    const hint =
      near === undefined ? `it takes ${known.map(called).join(", ") || "nothing"}` : `did you mean ${called(near)}?`;
    throw invalid(`"${nameOf(of)}" does not know ${called(name)}: ${hint}`);
  }
  for (const [name, each] of fieldsOf(of)) {
    // What is undefined was not given: a wrong argument must not mean everything.
    if (Object.hasOwn(given, name)) each.check(given[name], called(name));
    else if (!each.maybe) throw invalid(`${called(name)} is missing: ${each.about}`);
  }
  of.check?.(given);
  return given;
}
