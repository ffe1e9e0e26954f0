// The buttons that give a job in line another place, or another priority.
import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { ask, whyNot } from "../../state/book.ts";

type Standing = VerbAnswer<"queues.line">["items"][number];

type MoversProps = {
  readonly job: Standing;
  readonly line: readonly Standing[];
  readonly onMove: (id: string, to: Omit<VerbInput<"jobs.move">, "id">) => Promise<void>;
};

/** Moves within the jobs of one priority; what another priority decides stays as it is. */
export function Movers({ job: { id, priority }, line, onMove }: MoversProps) {
  const at = line.findIndex((each) => each.id === id);
  const above = line[at - 1];
  const below = line[at + 1];
  const may = whyNot("operate");
  const noUp = may ?? (above?.priority === priority ? undefined : "It is the first of its priority");
  const noDown = may ?? (below?.priority === priority ? undefined : "It is the last of its priority");
  return (
    <span class="row end">
      <Button
        icon="top"
        label="Move to the front"
        kind="quiet"
        whyNot={noUp}
        onPress={() => onMove(id, { first: true })}
      />
      <Button
        icon="up"
        label="Move up"
        kind="quiet"
        whyNot={noUp}
        onPress={() => onMove(id, { before: above?.id ?? "" })}
      />
      <Button
        icon="down"
        label="Move down"
        kind="quiet"
        whyNot={noDown}
        onPress={() => onMove(id, { after: below?.id ?? "" })}
      />
      <Prioritise id={id} priority={priority} />
    </span>
  );
}

function Prioritise({ id, priority }: { readonly id: string; readonly priority: number }) {
  const [isAsking, setAsking] = useState(false);
  const [value, setValue] = useState(String(priority));
  return (
    <>
      <Button
        icon="edit"
        label="Change its priority"
        kind="quiet"
        whyNot={whyNot("operate")}
        onPress={() => setAsking(true)}
      />
      {isAsking ? (
        <Confirm
          title="Change the priority"
          act="Change it"
          onClose={() => setAsking(false)}
          onAct={() => ask("jobs.prioritise", { id, priority: Number(value) })}
        >
          <label class="field">
            <span>Priority, from −1000 to 1000; higher runs first, and it goes to the end of that priority</span>
            <input
              type="number"
              min={-1000}
              max={1000}
              value={value}
              onInput={({ currentTarget }) => setValue(currentTarget.value)}
            />
          </label>
        </Confirm>
      ) : null}
    </>
  );
}
