// The URL is the state: what is shown can be sent to a colleague, and the way back works.
import { useLocation, useRoute } from "preact-iso";
import { prefix, tenant } from "./book.ts";

export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** The address of a page, such as `href("/jobs", { q: "status:failed" })`. The tenant that is looked at goes along. */
export function href(path: string, query: Query = {}): string {
  const all: Query = { ...query, tenant: tenant.value };
  const given = Object.entries(all).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${prefix}${path}${text === "" ? "" : `?${text}`}`;
}

/** One segment of a path made of a name or id. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** What stands in the path of this page for a name such as `:id`. */
export function usePathParam(name: string): string {
  return useRoute().params[name] ?? "";
}

export type UrlState = {
  readonly path: string;
  get(name: string): string | undefined;
  /** Changes what is given and keeps the rest; null takes a name out. `push` makes a step that "back" undoes. */
  set(changes: Query, options?: { readonly push?: boolean }): void;
  go(path: string, query?: Query): void;
  /** To what `href` made. */
  goTo(address: string): void;
};

export function useUrl(): UrlState {
  const { path, query, route } = useLocation();
  return {
    path: path.startsWith(prefix) ? path.slice(prefix.length) || "/" : path,
    get: (name) => (query[name] === "" ? undefined : query[name]),
    set(changes, { push = false } = {}) {
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === undefined || value === "") next.delete(name);
        else next.set(name, String(value));
      }
      const text = next.toString();
      route(`${location.pathname}${text === "" ? "" : `?${text}`}`, !push);
    },
    go: (to, given) => route(href(to, given)),
    goTo: (address) => route(address),
  };
}
