// The key of a record as one text, for addresses and headings: an entity has one key, a relation its two ends.
export type Key = string | { readonly from: string; readonly to: string; readonly instance?: string };

export function keyText(key: Key): string {
  if (typeof key === "string") return key;
  return `${key.from} → ${key.to}${key.instance === undefined ? "" : ` (${key.instance})`}`;
}

/** As segments of a path. */
export function keyPath(key: Key): string {
  const parts =
    typeof key === "string" ? [key] : [key.from, key.to, ...(key.instance === undefined ? [] : [key.instance])];
  return parts.map(encodeURIComponent).join("/");
}
