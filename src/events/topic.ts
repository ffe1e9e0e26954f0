// Topics and the patterns that match them. Both are segments between dots. A topic (`light.kitchen.changed`) names what
// was said; in a pattern `*` stands for exactly one segment, and `>` as the last one for all that follow, at least one.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";

export function checkTopic(value: string, what = "topic"): string {
  const problem = problemOf(value) ?? wildcardIn(value);
  if (problem !== undefined) throw invalid(`${what} ${quote(value)} ${problem}`);
  return value;
}

export function checkPattern(value: string, what = "pattern"): string {
  const problem = problemOf(value) ?? misplacedWildcardIn(value);
  if (problem !== undefined) throw invalid(`${what} ${quote(value)} ${problem}`);
  return value;
}

/** Whether a pattern matches a topic; both have been checked. To ask many patterns at once, use an index. */
export function matchesTopic(pattern: string, topic: string): boolean {
  const { path, rest } = pathOf(pattern);
  const said = topic.split(".");
  const fits = rest ? said.length > path.length : said.length === path.length;
  return fits && path.every((segment, at) => segment === "*" || segment === said[at]);
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value === "") return 'is empty; write segments between dots, such as "light.kitchen.changed"';
  // A character is at least one byte: a huge text is refused before anything walks through it.
  const bytes = value.length > limits.topicBytesMax ? value.length : Buffer.byteLength(value);
  if (bytes > limits.topicBytesMax) {
    return `is ${bytes} bytes long; at most ${limits.topicBytesMax} are allowed: put what varies into the payload`;
  }
  if (!value.isWellFormed()) return "has a lone surrogate; clean it with text.toWellFormed()";
  if (/[\s\p{Cc}]/u.test(value)) return "has white space or a control character, such as U+0000; remove it";
  const isWhole = !value.split(".").includes("");
  return isWhole ? undefined : "has an empty segment; write one dot between two segments, none at the ends";
}

function wildcardIn(topic: string): string | undefined {
  if (!topic.includes("*") && !topic.includes(">")) return undefined;
  return 'has "*" or ">", which are for patterns; say one topic';
}

function misplacedWildcardIn(pattern: string): string | undefined {
  const segments = pattern.split(".");
  const mixed = segments.find((segment) => segment.length > 1 && (segment.includes("*") || segment.includes(">")));
  if (mixed !== undefined) return `has ${quote(mixed)}; "*" and ">" stand alone, each as a whole segment`;
  const rest = segments.indexOf(">");
  if (rest >= 0 && rest < segments.length - 1) return 'has ">" before its end; use "*" for one segment in the middle';
  return undefined;
}

/** Many patterns, asked at once which of them match a topic: a tree with a node per segment. A match costs what the topic can
 *  reach, not how many patterns there are. Maps, not objects: `__proto__` is a segment like any other. */
export type PatternIndex<Value> = {
  add(pattern: string, value: Value): void;
  /** False when the pattern did not have this value. */
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
      // Empty branches are removed: an app that registers and retires for weeks must not grow the tree.
      for (let at = path.length; at > 0; at--) {
        if (!isBare(trail[at])) break;
        trail[at - 1]?.next.delete(path[at - 1] ?? "");
      }
      return true;
    },
    match(topic, meter = { steps: 0 }) {
      const found = new Set<Value>();
      // All nodes that the segments so far lead to. Each node has one path from the root, so it is visited at most once,
      // whatever the wildcards are, and the walk ends where the deepest pattern ends.
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
