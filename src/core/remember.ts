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
