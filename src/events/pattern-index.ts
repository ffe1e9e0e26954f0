// Many patterns, asked at once which of them match a topic: a tree with one node for each segment. The answer costs what
// the topic can reach, not how many patterns there are. Maps, not objects: `__proto__` is a segment like any other.

export type PatternIndex<Value> = {
  add(pattern: string, value: Value): void;
  /** False when this value was not there under this pattern. */
  remove(pattern: string, value: Value): boolean;
  /** Every value once, however many of its patterns match. In no particular order. `meter` counts the nodes visited. */
  match(topic: string, meter?: { steps: number }): Set<Value>;
  /** How many pairs of pattern and value there are. */
  readonly size: number;
};

type Node<Value> = {
  /** By the segment itself; a topic cannot hold `*`, so its node stands here too. */
  readonly next: Map<string, Node<Value>>;
  /** The values whose pattern ends here. */
  readonly values: Set<Value>;
  /** The values whose pattern goes on with `>`. */
  readonly rest: Set<Value>;
};

export function openPatternIndex<Value>(): PatternIndex<Value> {
  const root = newNode<Value>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    add(pattern, value) {
      const { path, rest } = pathOf(pattern);
      let node = root;
      for (const segment of path) {
        let next = node.next.get(segment);
        if (next === undefined) node.next.set(segment, (next = newNode()));
        node = next;
      }
      const values = rest ? node.rest : node.values;
      if (!values.has(value)) size += 1;
      values.add(value);
    },
    remove(pattern, value) {
      const { path, rest } = pathOf(pattern);
      const trail = [root];
      for (const segment of path) {
        const next = trail.at(-1)?.next.get(segment);
        if (next === undefined) return false;
        trail.push(next);
      }
      const end = trail.at(-1) ?? root;
      if (!(rest ? end.rest : end.values).delete(value)) return false;
      size -= 1;
      // Branches that lead nowhere go too: an app that registers and retires for weeks must not grow the tree.
      for (let at = path.length; at > 0; at--) {
        if (!isBare(trail[at])) break;
        trail[at - 1]?.next.delete(path[at - 1] ?? "");
      }
      return true;
    },
    match(topic, meter = { steps: 0 }) {
      const found = new Set<Value>();
      // All the nodes that the segments so far lead to. Each node has one way from the root, so it is visited at most
      // once, whatever the wildcards are, and the walk ends where the deepest pattern does.
      let reached = [root];
      for (const segment of topic.split(".")) {
        const further: Node<Value>[] = [];
        for (const node of reached) {
          meter.steps += 1;
          for (const value of node.rest) found.add(value);
          const exact = node.next.get(segment);
          if (exact !== undefined) further.push(exact);
          const any = node.next.get("*");
          if (any !== undefined && any !== exact) further.push(any);
        }
        if (further.length === 0) return found;
        reached = further;
      }
      for (const node of reached) {
        meter.steps += 1;
        for (const value of node.values) found.add(value);
      }
      return found;
    },
  };
}

function pathOf(pattern: string): { path: string[]; rest: boolean } {
  const path = pattern.split(".");
  const rest = path.at(-1) === ">";
  if (rest) path.pop();
  return { path, rest };
}

function newNode<Value>(): Node<Value> {
  return { next: new Map(), values: new Set(), rest: new Set() };
}

function isBare(node: Node<unknown> | undefined): boolean {
  return node !== undefined && node.next.size === 0 && node.values.size === 0 && node.rest.size === 0;
}
