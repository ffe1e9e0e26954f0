// JSON whose numbers stay what was written: one that a double cannot hold is kept as its digits.

/** A number that JavaScript would change. */
export class Exact {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toJSON(): unknown {
    return rawJson(this.text);
  }
}

type Source = { readonly source?: string };

export function readExactly(text: string): unknown {
  // Most answers have no such number, and a reviver visits every value.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown, context?: Source) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || isHeld(source, value)) return value;
    return new Exact(source);
  });
}

/** As JSON for people, the digits as they came. */
export function writeExactly(value: unknown, space = 2): string {
  return JSON.stringify(value, null, space) ?? "null";
}

function isHeld(source: string, value: number): boolean {
  return String(value) === source || !/^-?\d+$/.test(source) || Number.isSafeInteger(value);
}

function rawJson(text: string): unknown {
  const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
  return rawJSON === undefined ? text : rawJSON(text);
}
