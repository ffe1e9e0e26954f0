// What a record is connected with, by each relation that begins or ends at its type.
import type { VerbInput } from "../../../client/verbs.ts";
import { Answer, Panel } from "../../parts/page.tsx";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

export function Related({ type, entity }: { readonly type: string; readonly entity: string }) {
  const types = useVerb("records.types", {});
  const relations = (types.data?.items ?? []).filter(
    ({ kind, from, to }) => kind === "relation" && (from === type || to === type),
  );
  const via = relations.map(({ name }) => name);
  const input = { type, key: entity, via, direction: "both", hops: 1 } as unknown as VerbInput<"records.traverse">;
  const found = useVerb("records.traverse", input, { topics: ["record.committed"], off: via.length === 0 });
  if (via.length === 0) return null;
  return (
    <Panel title="Connected with">
      <Answer of={found}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="faint">Nothing.</p>
          ) : (
            <ul class="blame">
              {items.map(({ type: other, key, path }) => (
                <li key={`${other}/${key}`}>
                  <span class="soft small">{path.map(({ relation }) => relation).join(", ")}</span>
                  <a class="grow cut" href={href(`/records/${segment(other)}/${segment(key)}`)}>
                    <bdi>{`${other} ${key}`}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Panel>
  );
}
