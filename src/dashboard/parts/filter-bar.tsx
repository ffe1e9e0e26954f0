// One line that filters a list: `queue:mail status:failed`, with suggestions from the data. It stands in the URL as `q`.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { parseFilter } from "../state/filter.ts";
import { savedViews } from "../state/settings.ts";
import { useUrl } from "../state/url.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export type FilterField = {
  readonly name: string;
  readonly hint: string;
  /** Values to choose from, asked when the name is typed. */
  readonly values?: readonly string[] | (() => Promise<readonly string[]>);
};

type Suggestion = { readonly text: string; readonly hint: string };

const suggestionsMax = 12;

export function FilterBar({ fields, label }: { readonly fields: readonly FilterField[]; readonly label: string }) {
  const url = useUrl();
  const stands = url.get("q") ?? "";
  const [text, setText] = useState(stands);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const [suggestions, setSuggestions] = useState<readonly Suggestion[]>([]);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  useEffect(() => setText(stands), [stands]);
  useEffect(() => {
    let isOver = false;
    setAt(-1);
    void suggest(text, fields).then((found) => {
      if (!isOver) setSuggestions(found);
    });
    return () => {
      isOver = true;
    };
  }, [text]);

  function apply(next: string): void {
    setText(next);
    setOpen(false);
    url.set({ q: next.trim(), after: null });
  }

  function take({ text: chosen }: Suggestion): void {
    const next = text.replace(/\S*$/, "") + chosen;
    if (chosen.endsWith(":")) {
      setText(next);
      input.current?.focus();
    } else {
      apply(`${next} `);
    }
  }

  function onKey(event: KeyboardEvent): void {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((at + step + suggestions.length + 1) % (suggestions.length + 1 || 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = isOpen ? suggestions[at] : undefined;
      if (chosen === undefined) apply(text);
      else take(chosen);
    } else if (event.key === "Escape") {
      if (isOpen) setOpen(false);
      else apply("");
    }
  }

  const isShown = isOpen && suggestions.length > 0;
  return (
    <div class="filter" role="search">
      <Icon name="search" size={14} />
      <input
        ref={input}
        type="text"
        class="filter-input"
        data-search
        role="combobox"
        aria-label={label}
        aria-expanded={isShown}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isShown && at >= 0 ? `${id}-${at}` : undefined}
        placeholder={`Filter: ${fields
          .slice(0, 3)
          .map(({ name }) => `${name}:…`)
          .join("  ")}`}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKey}
      />
      {stands === "" ? null : (
        <>
          <Button icon="plus" label="Save this view" kind="quiet" onPress={saveView} />
          <Button icon="close" label="Clear the filter" kind="quiet" onPress={() => apply("")} />
        </>
      )}
      <ul id={id} role="listbox" class="suggestions" hidden={!isShown} aria-label="Suggestions">
        {suggestions.map((each, index) => (
          <li
            key={each.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseDown={(event) => {
              event.preventDefault();
              take(each);
            }}
          >
            <code>{each.text}</code>
            <span class="faint">{each.hint}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Saved under the words of the filter; the palette lists it. */
function saveView(): void {
  const url = location.pathname + location.search;
  const name = `${document.title.replace(/ · Daybook$/, "")}: ${new URLSearchParams(location.search).get("q") ?? ""}`;
  savedViews.value = [...savedViews.value.filter((view) => view.url !== url), { name, url }];
}

async function suggest(text: string, fields: readonly FilterField[]): Promise<readonly Suggestion[]> {
  const last = text.endsWith(" ") ? "" : (text.split(/\s+/).at(-1) ?? "");
  const [name = "", begun] = last.split(":");
  if (begun === undefined) {
    const taken = new Set(parseFilter(text).map((term) => term.name));
    return fields
      .filter((field) => field.name.startsWith(name) && !taken.has(field.name))
      .map((field) => ({ text: `${field.name}:`, hint: field.hint }))
      .slice(0, suggestionsMax);
  }
  const values = fields.find((field) => field.name === name)?.values ?? [];
  const known = typeof values === "function" ? await values().catch(() => []) : values;
  return known
    .filter((value) => value.toLowerCase().includes(begun.toLowerCase()) && value !== begun)
    .slice(0, suggestionsMax)
    .map((value) => ({ text: `${name}:${/\s/.test(value) ? JSON.stringify(value) : value}`, hint: "" }));
}
