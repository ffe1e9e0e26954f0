// A value as JSON that can be folded, searched by the browser, and copied. Large lists and objects are shown in part.
import { useState } from "preact/hooks";
import { Exact, writeExactly } from "../state/exact.ts";
import { CopyButton } from "./copy.tsx";

type Entry = readonly [name: string | null, value: unknown];

const shownFirst = 50;
const textShown = 400;

export function JsonView({ value, label = "Value" }: { readonly value: unknown; readonly label?: string }) {
  if (value === undefined) return <p class="faint">Nothing</p>;
  return (
    <div class="json" role="group" aria-label={label}>
      <div class="json-tools">
        <CopyButton text={() => writeExactly(value)} label={`Copy ${label.toLowerCase()} as JSON`} />
      </div>
      <Node entry={[null, value]} depth={0} />
    </div>
  );
}

function Node({ entry: [name, value], depth }: { readonly entry: Entry; readonly depth: number }) {
  const entries = entriesOf(value);
  const [isOpen, setOpen] = useState(depth < 2 && (entries?.length ?? 0) <= 100);
  const [shown, setShown] = useState(shownFirst);
  if (entries === undefined) {
    return (
      <div class="json-line">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  }
  const [begin, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return (
      <div class="json-line">
        <Name name={name} />
        {begin + end}
      </div>
    );
  }
  return (
    <div>
      <button type="button" class="json-line json-fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Name name={name} />
        {begin}
        {isOpen ? null : <span class="faint"> {`${entries.length} … `}</span>}
        {isOpen ? null : end}
      </button>
      {isOpen ? (
        <>
          <div class="json-inside">
            {entries.slice(0, shown).map((each, index) => (
              <Node key={each[0] ?? index} entry={each} depth={depth + 1} />
            ))}
            {entries.length > shown ? (
              <button type="button" class="link" onClick={() => setShown(shown * 4)}>
                {`${entries.length - shown} more`}
              </button>
            ) : null}
          </div>
          <div class="json-line">{end}</div>
        </>
      ) : null}
    </div>
  );
}

function Name({ name }: { readonly name: string | null }) {
  return name === null ? null : (
    <>
      <bdi class="json-name">{name.length > 200 ? `${name.slice(0, 200)}…` : name}</bdi>
      <span class="faint">: </span>
    </>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (value instanceof Exact) return <span class="json-number">{value.text}</span>;
  if (typeof value !== "string")
    return <span class={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  const text = isWhole || value.length <= textShown ? value : value.slice(0, textShown);
  return (
    <>
      <bdi class="json-string">{JSON.stringify(text)}</bdi>
      {text.length < value.length ? (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {` … ${value.length - text.length} more characters`}
        </button>
      ) : null}
    </>
  );
}

function entriesOf(value: unknown): readonly Entry[] | undefined {
  if (Array.isArray(value)) return value.map((each: unknown) => [null, each] as const);
  if (typeof value !== "object" || value === null || value instanceof Exact) return undefined;
  return Object.entries(value);
}
