// How many jobs of a queue may run at once, and how many may start in a while.
import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { ask } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";

type Queue = VerbAnswer<"queues.list">["items"][number];

type LimitsProps = {
  readonly queue: Queue;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export function Limits({ queue: { queue, concurrency, rate }, onClose, onDone }: LimitsProps) {
  const [most, setMost] = useState(concurrency === null ? "" : String(concurrency));
  const [pace, setPace] = useState(rate === null ? "" : `${rate.max}/${written(rate.perMs)}`);
  return (
    <Confirm
      title={`Limits of ${queue}`}
      act="Set"
      onClose={onClose}
      onAct={async () => {
        await ask("queues.limit", {
          queue,
          concurrency: most.trim() === "" ? null : Number(most),
          rate: paceOf(pace.trim()),
        });
        tell(`The limits of ${queue} are set`);
        onDone();
      }}
    >
      <label class="field">
        <span>How many may run at the same time</span>
        <input
          type="text"
          placeholder="no limit"
          value={most}
          onInput={({ currentTarget }) => setMost(currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>How many may start per window</span>
        <input
          type="text"
          placeholder="no limit, or 10/1m"
          value={pace}
          onInput={({ currentTarget }) => setPace(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}

/** `10/1m`. What is written otherwise the server refuses, and says how it is written. */
function paceOf(text: string): NonNullable<VerbInput<"queues.limit">["rate"]> | null {
  if (text === "") return null;
  const [max = "", per = ""] = text.split("/");
  return { max: Number(max), per: per.trim() };
}

function written(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000}h`;
  if (ms % 60_000 === 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
