// Routes under the names that other designs gave them, where only the names differ (docs/origins.md).

export type Alias = {
  readonly method: "GET" | "POST";
  /** `{tenant}` is whose it is; the other parts are fields of the verb. */
  readonly path: `/${string}`;
  readonly key: string;
  /** It was accepted, and stands below this route by its id. */
  readonly accepted?: true;
};

export const aliases: readonly Alias[] = [
  { method: "POST", path: "/tenants/{tenant}/service-calls", key: "calls.submit", accepted: true },
  { method: "GET", path: "/tenants/{tenant}/service-calls", key: "calls.list" },
  { method: "GET", path: "/tenants/{tenant}/service-calls/{id}", key: "calls.show" },
  { method: "POST", path: "/tenants/{tenant}/service-calls/{id}/cancel", key: "calls.cancel" },
];
