// Goes anywhere: a page, a saved view, or a thing by its id or name.
import { useEffect, useRef, useState } from "preact/hooks";
import { waitAnywhere } from "../../core/anywhere.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { savedViews } from "../state/settings.ts";
import { href, useUrl } from "../state/url.ts";
import { findThings, type Choice } from "./find.ts";
import { places } from "./places.ts";

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const url = useUrl();
  const [text, setText] = useState("");
  const [found, setFound] = useState<readonly Choice[]>([]);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);

  useEffect(() => {
    const own = new AbortController();
    setFound([]);
    if (text.trim().length >= 3) {
      void waitAnywhere(150, own.signal)
        .then(() => findThings(text.trim(), own.signal))
        .then(setFound, () => undefined);
    }
    return () => own.abort();
  }, [text]);

  const choices = [...found, ...fixedChoices().filter(({ text: name }) => fits(name, text))].slice(0, 14);

  function take(choice: Choice | undefined): void {
    if (choice === undefined) return;
    onClose();
    url.goTo(choice.href);
  }

  function onKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((at + step + choices.length) % Math.max(1, choices.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(choices[at]);
    }
  }

  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="text"
        class="palette-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={choices[at] === undefined ? undefined : `palette-${at}`}
        aria-label="A page, an id or a name"
        placeholder="A page, an id, a queue, a listener …"
        autocomplete="off"
        spellcheck={false}
        value={text}
        autofocus
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <ul id="palette-list" ref={list} class="palette-list" role="listbox" aria-label="Where to go">
        {choices.map((choice, index) => (
          <li
            key={choice.href + choice.text}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onClick={() => take(choice)}
          >
            <Icon name={choice.icon} />
            <bdi class="grow cut">{choice.text}</bdi>
            <span class="faint small cut">{choice.hint}</span>
          </li>
        ))}
      </ul>
      {choices.length === 0 ? <p class="faint">Nothing is called that.</p> : null}
    </Dialog>
  );
}

function fixedChoices(): readonly Choice[] {
  return [
    ...places.map(({ path, title, icon, letter }) => ({ text: title, hint: `g ${letter}`, icon, href: href(path) })),
    ...savedViews.value.map(({ name, url }) => ({
      text: name,
      hint: "saved view",
      icon: "search" as const,
      href: url,
    })),
  ];
}

function fits(name: string, text: string): boolean {
  const low = name.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}
