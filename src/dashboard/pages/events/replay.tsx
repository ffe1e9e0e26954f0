// Says events again, as new ones: it counts first.
import { useEffect, useState } from "preact/hooks";
import type { VerbInput } from "../../../client/verbs.ts";
import { manyOf } from "../../parts/bulk.tsx";
import { messageOf } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { ask } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";

type Which = Pick<VerbInput<"events.replay">, "id" | "topic" | "since" | "until">;

export function ReplayDialog({ input, onClose }: { readonly input: Which; readonly onClose: () => void }) {
  const [count, setCount] = useState<number | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);
  useEffect(() => {
    ask("events.replay", { ...input, dryRun: true }).then(
      (found) => setCount(found.count),
      (error: unknown) => setFailure(messageOf(error)),
    );
  }, []);
  return (
    <Confirm
      title="Replay"
      act={count === undefined ? "Replay" : `Replay ${manyOf(count, "event")}`}
      whyNot={count === undefined ? (failure ?? "They are being counted") : count === 0 ? "There are none" : undefined}
      onClose={onClose}
      onAct={async (onProgress) => {
        const done = await ask("events.replay", input, { onProgress });
        tell(`${manyOf(done.count, "event")} said again`);
      }}
    >
      <p>
        {failure ??
          (count === undefined
            ? "Counting …"
            : `${manyOf(count, "event")} would be said again, as new events with a mark of what they repeat.`)}
      </p>
    </Confirm>
  );
}
