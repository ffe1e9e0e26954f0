import { invalid, notFound, type DaybookError } from "./error.ts";
import { quote } from "./quote.ts";
import { isPlain, isThenable } from "./json.ts";

// A name longer than this is not a slip of the hand, and comparing grows with the square of the length.
const wordLengthMax = 200;

/** The known word that a word probably means: at most a third of its letters away, ignoring case. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > wordLengthMax) return undefined;
  let best: { word: string; distance: number } | undefined;
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(Math.max(word.length, candidate.length) / 3));
    if (Math.abs(word.length - candidate.length) > allowed) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= allowed && (best === undefined || distance < best.distance)) best = { word: candidate, distance };
  }
  return best?.word;
}

/** The end of a sentence about an unknown word: the known one that was probably meant, or a full stop. */
export function didYouMean(word: unknown, known: readonly string[]): string {
  const near = typeof word === "string" ? nearest(word, known) : undefined;
  return near === undefined ? "." : `: did you mean ${JSON.stringify(near)}?`;
}

/** There is no thing of that name; the error names the one that was probably meant. */
export function noSuch(
  what: string,
  name: string,
  known: readonly string[],
  details: Record<string, unknown>,
): DaybookError {
  const meant = nearest(name, known);
  const hint = meant === undefined ? "" : `: did you mean ${quote(meant)}?`;
  return notFound(`${what} ${quote(name)}${hint}`, { ...details, ...(meant === undefined ? {} : { meant }) });
}

/** Refuses a word that is none of the known ones. */
export function checkWord<Word extends string>(word: Word, known: readonly Word[], what: string): Word {
  if (known.includes(word)) return word;
  throw invalid(`${what} ${quote(word)} is not known${didYouMean(word, known)} Known: ${known.join(", ")}`);
}

// Our words, and what other libraries call them, so that the error can name ours.
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  at: ["startAfter", "runAt", "runAfter", "scheduledAt"],
  in: ["delay", "scheduleIn"],
  attempts: ["retries", "retryLimit", "maxRetries"],
  backoff: ["retryDelay"],
  key: ["jobKey", "jobId", "singletonKey", "unique", "deduplication"],
  zone: ["tz", "timezone", "timeZone"],
  cron: ["pattern"],
  every: ["interval"],
  run: ["handler", "handle", "perform", "process"],
  params: ["schema", "data"],
  on: ["topic", "topics"],
  timeout: ["expireIn"],
  queue: ["queueName"],
  concurrency: ["teamSize"],
};

/** The known option that an unknown one probably means. */
function meantBy(option: string, known: readonly string[]): string | undefined {
  return known.find((word) => elsewhere[word]?.includes(option)) ?? nearest(option, known);
}

/** Refuses unknown options: a misspelt option that is silently ignored is found out in production. Refuses what is no plain object,
 *  too: a promise or a Map has no options of its own, so it would count as none given, and to a filter that means everything. */
export function refuseUnknown(options: object, known: readonly string[], where: string): void {
  if (!isPlain(options)) {
    const what = isThenable(options) ? "a promise: await it first" : `${quote(options)}: give a plain object`;
    throw invalid(`the options for ${where} are ${what}. Known: ${known.join(", ")}`);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const meant = meantBy(key, known);
    const hint = meant === undefined ? "." : `: did you mean ${JSON.stringify(meant)}?`;
    const name = JSON.stringify(key.slice(0, wordLengthMax));
    throw invalid(`unknown option ${name} for ${where}${hint} Known: ${known.join(", ")}`, {
      details: { option: key, ...(meant === undefined ? {} : { meant }) },
    });
  }
}

/** The same where nothing given means everything: a switch that is neither on nor off is refused as well. */
export function refuseUnknownOfAll(
  options: object,
  known: { readonly fields: readonly string[]; readonly flags: readonly string[] },
  where: string,
): void {
  refuseUnknown(options, [...known.fields, ...known.flags], where);
  for (const [key, value] of Object.entries(options)) {
    if (!known.flags.includes(key) || value === undefined || typeof value === "boolean") continue;
    throw invalid(`${key} is ${quote(value)}: true or false`);
  }
}

/** The same for a filter. It refuses null too, because nothing equals null and the list would be empty without a reason. */
export function refuseUnknownFilter(filter: object, known: readonly string[], where: string): void {
  refuseUnknown(filter, known, where);
  for (const [key, value] of Object.entries(filter)) {
    if (value === null && key !== "after") {
      throw invalid(`${key} is null in ${where}, which nothing equals: leave it out, or give a value`);
    }
  }
}

/** Damerau–Levenshtein (optimal string alignment): swapping two neighbours, the most common slip, counts as one. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
