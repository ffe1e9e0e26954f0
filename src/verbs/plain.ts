// Text that anybody may have written, made safe to print: nothing in it moves the cursor, colours the terminal, breaks a line
// that is one, or turns the direction of reading.

/** What a terminal would obey: a sequence with its parameters, and a command with its text where its end is there too. The text ends at the
 *  next escape, so that each character is looked at once, however many beginnings there are without an end. */
const commands =
  /(?:\u001B\[|\u009B)[0-?]*[ -/]*[@-~]|(?:\u001B\]|\u009D)[^\u0007\u001B\u009C\u009D]*(?:\u0007|\u001B\\|\u009C)/g;

/** Marks that change the order in which a line is read, and the two breaks that are not "\n". */
const unseen = /[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;

/** On one line. */
export function plainLine(text: string): string {
  return text
    .replaceAll(commands, "")
    .replaceAll(unseen, escaped)
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim();
}

/** On its own lines. */
export function plainLines(text: string): string {
  return text
    .replaceAll(commands, "")
    .replaceAll(unseen, escaped)
    .replaceAll(/(?![\n\t])\p{Cc}/gu, "");
}

/** A value as JSON that another program may read: nothing is taken away, and what could command a terminal is escaped. */
export function plainJson(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? "null")
    .replaceAll(/[\u007F-\u009F]/g, escaped)
    .replaceAll(unseen, escaped);
}

function escaped(char: string): string {
  return String.raw`\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
