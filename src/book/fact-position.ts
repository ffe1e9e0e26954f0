// How far a reader of facts has read, as the text that it gives to read on: one number for each source, and when that was.
import { factSources } from "./fact-sources.ts";

export type Position = {
  /** In the order of the sources. */
  readonly numbers: readonly number[];
  /** Whatever was made earlier than this had been told. */
  readonly since: number;
  /** When these were numbers of rows; not before `since`. */
  readonly issued: number;
  /** A transaction that was under way for too long may still commit something below these numbers. */
  readonly unsure: boolean;
};

export function positionText({ numbers, since, issued, unsure }: Position): string {
  const read = factSources.map(({ letter }, index) => `${letter}${numbers[index] ?? 0}`);
  return [...read, `t${since}`, `n${Math.max(0, issued - since)}`, ...(unsure ? ["u1"] : [])].join(".");
}

/** Undefined for a text that is none; a source that it does not name is read from its beginning on. */
export function readPosition(text: string): Position | undefined {
  if (!/^([a-z]\d{1,15})(\.[a-z]\d{1,15}){0,11}$/.test(text)) return undefined;
  const parts = new Map(text.split(".").map((part) => [part.slice(0, 1), Number(part.slice(1))]));
  const since = parts.get("t") ?? 0;
  return {
    numbers: factSources.map(({ letter }) => parts.get(letter) ?? 0),
    since,
    issued: since + (parts.get("n") ?? 0),
    unsure: parts.has("u"),
  };
}
