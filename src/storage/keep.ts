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
