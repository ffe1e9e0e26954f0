// The key of a record as one text, for addresses and headings: an entity has one key, a relation its two ends.
export type Key = string | { readonly from: string; readonly to: string; readonly instance?: string };

export function keyText(key: Key): string {
  if (typeof key === "string") return key;
  return `${key.from} → ${key.to}${hasInstance(key.instance) ? ` (${key.instance})` : ""}`;
}

/** As segments of a path. */
export function keyPath(key: Key): string {
  return partsOf(key).map(encodeURIComponent).join("/");
}

/** As the verbs take it. */
export function partsOf(key: Key): readonly string[] {
  if (typeof key === "string") return [key];
  return [key.from, key.to, ...(hasInstance(key.instance) ? [key.instance] : [])];
}

/** A relation of which two entities have one at most has the instance "". */
function hasInstance(instance: string | undefined): instance is string {
  return instance !== undefined && instance !== "";
}
