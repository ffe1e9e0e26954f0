// What differs between two values, field by field, down to the leaves.
import { writeExactly } from "../state/exact.ts";

type Change = { readonly path: string; readonly before: unknown; readonly after: unknown };

const shownMax = 200;

export function Diff({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const changes = changesOf(before, after, "");
  if (changes.length === 0) return <p class="faint">Nothing differs.</p>;
  return (
    <ul class="diff" aria-label="What differs">
      {changes.slice(0, shownMax).map(({ path, before: old, after: now }) => (
        <li key={path}>
          <code class="diff-path">{path === "" ? "document" : path}</code>
          {old === undefined ? null : (
            <del>
              <span class="sr">was </span>
              <bdi>{brief(old)}</bdi>
            </del>
          )}
          {now === undefined ? null : (
            <ins>
              <span class="sr">is </span>
              <bdi>{brief(now)}</bdi>
            </ins>
          )}
        </li>
      ))}
      {changes.length > shownMax ? <li class="faint">{`${changes.length - shownMax} more`}</li> : null}
    </ul>
  );
}

function changesOf(before: unknown, after: unknown, path: string): Change[] {
  if (writeExactly(before) === writeExactly(after)) return [];
  // What is new or gone as a whole is told field by field, as long as it has any.
  if (path === "" && before === undefined && hasFields(after)) return changesOf({}, after, path);
  if (path === "" && after === undefined && hasFields(before)) return changesOf(before, {}, path);
  if (!isPlain(before) || !isPlain(after)) return [{ path, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => changesOf(before[name], after[name], path === "" ? name : `${path}.${name}`));
}

function hasFields(value: unknown): boolean {
  return isPlain(value) && Object.keys(value).length > 0;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function brief(value: unknown): string {
  const text = typeof value === "string" ? value : writeExactly(value, 0);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
