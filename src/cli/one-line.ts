// Text from the book or from a user's program for a line of its own: nothing in it commands the terminal, and it is cut to a length.
import { plainLine } from "../verbs/plain.ts";
import { cutTo } from "../verbs/width.ts";

export function oneLine(text: string, widthMax: number): string {
  return cutTo(plainLine(text), widthMax);
}

export function errorLine(
  { type, message }: { readonly type: string; readonly message: string },
  widthMax: number,
): string {
  return oneLine(`${type}: ${message}`, widthMax);
}
