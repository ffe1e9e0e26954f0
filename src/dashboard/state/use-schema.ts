// What the params of a job must look like, as far as the book knows: forms are made of it.
import type { Schema } from "../parts/schema-form.tsx";
import { useVerb } from "./use-verb.ts";

/** Null while it is not known, and where the definition has none. */
export function useSchema(name: string): Schema | null {
  const known = useVerb("definitions.list", { kind: "job", limit: 200 });
  const has = known.data?.items.some((each) => each.name === name && each.hasSchema) === true;
  const { data } = useVerb("definitions.show", { name }, { off: !has });
  return has && data?.name === name ? data.schema : null;
}
