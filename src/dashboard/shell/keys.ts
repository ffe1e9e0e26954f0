// The keyboard: `/` filters, `j k` move, Enter opens, `x` selects, `g` and a letter goes to a page, Ctrl-K or `.` opens the palette.
import { useEffect } from "preact/hooks";
import { elapsedMs } from "../../core/anywhere.ts";
import { isPaused } from "../state/live.ts";
import { useUrl } from "../state/url.ts";
import { places } from "./places.ts";

type Doors = { readonly openPalette: () => void; readonly openHelp: () => void };

export const helpLines: readonly (readonly [keys: string, what: string])[] = [
  ["/", "filter the list"],
  ["j k", "move down and up a list"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["r", "retry, where the page offers it"],
  ["Ctrl K", "go to a page, an id or a name"],
  ["g …", "go to a page by its letter: g o overview, g j jobs, g d dead letters"],
  ["p", "pause and go on with updates"],
  ["?", "this help"],
  ["Esc", "close, clear"],
];

export function useKeys({ openPalette, openHelp }: Doors): void {
  const url = useUrl();
  useEffect(() => {
    let wentAt = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || isAsking()) return;
      const { key } = event;
      if (elapsedMs() - wentAt < 1500) {
        wentAt = Number.NEGATIVE_INFINITY;
        const place = places.find(({ letter }) => letter === key);
        if (place !== undefined) url.go(place.path);
        return;
      }
      if (key === "g") wentAt = elapsedMs();
      else if (key === "/") focusFilter(event);
      else if (key === "j" || key === "k") moveRow(key === "j" ? 1 : -1);
      else if (key === "x") document.activeElement?.closest("[data-row]")?.querySelector("input")?.click();
      else if (key === "p") isPaused.value = !isPaused.value;
      else if (key === "?") openHelp();
      else document.querySelector<HTMLElement>(`[data-hotkey="${CSS.escape(key)}"]`)?.click();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || (target.matches("input, textarea, select") && !target.matches('[type="checkbox"]'))
  );
}

function isAsking(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

function focusFilter(event: KeyboardEvent): void {
  const input = document.querySelector<HTMLElement>("[data-search]");
  if (input === null) return;
  event.preventDefault();
  input.focus();
}

function moveRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const current = document.activeElement?.closest("[data-row]");
  const at = rows.findIndex((row) => row === current);
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
  (next?.querySelector<HTMLElement>(".row-link") ?? next?.querySelector<HTMLElement>("a, button, input"))?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
