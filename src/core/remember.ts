// What is computed once and asked for often: texts that are parsed, templates that are checked. The answer must depend on the key
// alone, so that forgetting it costs time and nothing else.

/** Makes the answer to each key once. Of more than `max` keys the one that came first is forgotten. */
export function remember<K, V>(make: (key: K) => V, { max = 1000 }: { readonly max?: number } = {}): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    if (known.size >= max) for (const first of known.keys()) if (known.delete(first)) break;
    known.set(key, made);
    return made;
  };
}

/** Makes the answer to each object once, for as long as the object lives. */
export function rememberFor<K extends WeakKey, V>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => {
    let found = known.get(key);
    if (found === undefined) known.set(key, (found = make(key)));
    return found;
  };
}

/** What the rooms remember about one store, each thing under its own name, so that every cache has an owner and can be found.
 *  The first caller makes the value; it lasts as long as the store. */
export type Keep = <T>(name: string, make: () => T) => T;

export function createKeep(): Keep {
  const kept = new Map<string, unknown>();
  return <T>(name: string, make: () => T): T => {
    if (!kept.has(name)) kept.set(name, make());
    return kept.get(name) as T;
  };
}
