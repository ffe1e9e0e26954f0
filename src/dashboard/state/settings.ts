// What this browser remembers of its reader: theme, zone, and the views that were saved.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
export type Zone = "local" | "utc" | "schedule";
export type SavedView = { readonly name: string; readonly url: string };

export const theme = signal<Theme>(read("theme", isTheme, "auto"));
export const zone = signal<Zone>(read("zone", isZone, "local"));
export const savedViews = signal<readonly SavedView[]>(read("views", isViews, []));

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  write("theme", theme.value);
});
effect(() => write("zone", zone.value));
effect(() => write("views", savedViews.value));

function isTheme(value: unknown): value is Theme {
  return value === "auto" || value === "light" || value === "dark";
}

function isZone(value: unknown): value is Zone {
  return value === "local" || value === "utc" || value === "schedule";
}

function isViews(value: unknown): value is readonly SavedView[] {
  return Array.isArray(value) && value.every((each: Partial<SavedView> | null) => typeof each?.url === "string");
}

function read<T>(name: string, fits: (value: unknown) => value is T, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(`daybook.${name}`) ?? "null");
    return fits(value) ? value : otherwise;
  } catch {
    return otherwise;
  }
}

function write(name: string, value: unknown): void {
  try {
    localStorage.setItem(`daybook.${name}`, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing shows the defaults at its next start.
  }
}
