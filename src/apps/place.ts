// Who is told of the errors of a registration, and how it is named to them.
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { ErrorPlace, OnError } from "./define.ts";
import type { SetupParts } from "./setup.ts";

export function placeOf(
  { app, identity }: Pick<SetupParts, "app" | "identity">,
  name: string,
  onError: unknown,
): { readonly place: Omit<ErrorPlace, "runId">; readonly told: OnError | undefined } {
  if (onError !== undefined && typeof onError !== "function") {
    throw invalid(`onError of ${quote(name)} is ${quote(onError)}; it must be a function`);
  }
  const place = { app: identity.app, instance: identity.instance, registration: name };
  return { place, told: (onError as OnError | undefined) ?? app.onError };
}
