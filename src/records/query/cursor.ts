// Where a page ended: what the last record held in the places of the order, and its key. A cursor belongs to one question;
// with another it is refused.
import { createHash } from "node:crypto";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import type { OrderValue } from "./order.ts";

export type Cursor = { readonly values: readonly OrderValue[]; readonly key: string };

/** What tells one question from another. */
export function questionMark(question: unknown): string {
  return createHash("sha256")
    .update(toJson(question, { bytesMax: 64 * 1024 * 1024 }))
    .digest("base64url")
    .slice(0, 12);
}

export function writeCursor({ values, key }: Cursor, mark: string): string {
  return Buffer.from(JSON.stringify([mark, key, ...values])).toString("base64url");
}

export function readCursor(text: string, mark: string, orders: number): Cursor {
  const parsed = parse(text);
  const [of, key, ...values] = Array.isArray(parsed) ? (parsed as unknown[]) : [];
  if (typeof of !== "string" || typeof key !== "string" || !values.every(isOrderValue)) {
    throw invalid(`${JSON.stringify(String(text).slice(0, 60))} is not a cursor: give "next" of the page before`);
  }
  if (of !== mark || values.length !== orders) {
    throw invalid("the cursor belongs to another question: begin again without it, or ask as for the page before");
  }
  return { values: values as OrderValue[], key };
}

function parse(text: unknown): unknown {
  try {
    return JSON.parse(Buffer.from(String(text), "base64url").toString());
  } catch {
    return undefined;
  }
}

function isOrderValue(value: unknown): boolean {
  return value === null || typeof value === "string" || typeof value === "number";
}
