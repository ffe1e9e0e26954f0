// What is typed into a filter bar: `queue:mail status:failed params.user.id:42 age:>1h`. A word without a colon is free text.

export type Term = { readonly name: string; readonly value: string };

/** A value with spaces stands in quotes: `error:"no paper"`. */
export function parseFilter(text: string): readonly Term[] {
  const words = text.matchAll(/(?:([\w.-]+):)?("(?:[^"\\]|\\.)*"?|\S+)/g);
  return [...words].map(([, name = "", value = ""]) => ({ name, value: unquote(value) }));
}

export function writeFilter(terms: readonly Term[]): string {
  return terms.map(({ name, value }) => `${name === "" ? "" : `${name}:`}${quoteIf(value)}`).join(" ");
}

export function valuesOf(terms: readonly Term[], name: string): readonly string[] {
  return terms
    .filter((term) => term.name === name)
    .flatMap(({ value }) => value.split(",").filter((each) => each !== ""));
}

/** The one value of a name, the last that was typed. */
export function valueOf(terms: readonly Term[], name: string): string | undefined {
  return valuesOf(terms, name).at(-1);
}

/** The text with this name set to that value, or without it. */
export function withTerm(text: string, name: string, value: string | undefined): string {
  const others = parseFilter(text).filter((term) => term.name !== name);
  return writeFilter(value === undefined || value === "" ? others : [...others, { name, value }]);
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1).replace(/"$/, "").replaceAll(/\\(.)/g, "$1") : value;
}

function quoteIf(value: string): string {
  return /[\s"]/.test(value) ? `"${value.replaceAll(/(["\\])/g, "\\$1")}"` : value;
}
