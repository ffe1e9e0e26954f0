// Fires slots of the past: it says how many first.
import { useState } from "preact/hooks";
import { Confirm } from "../../parts/dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { ask } from "../../state/book.ts";
import { serverNow } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";
import { manyOf } from "../../parts/bulk.tsx";

type Props = { readonly name: string; readonly onClose: () => void; readonly onDone: () => void };

export function Backfill({ name, onClose, onDone }: Props) {
  const [from, setFrom] = useState(() => localText(serverNow() - 86_400_000));
  const [to, setTo] = useState(() => localText(serverNow()));
  const [count, setCount] = useState<string | undefined>(undefined);
  const span = (): { from: string; to: string } => ({
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
  });
  return (
    <Confirm
      title={`Backfill ${name}`}
      act="Fire them"
      whyNot={count === undefined ? "Count them first" : undefined}
      onClose={onClose}
      onAct={async () => {
        const { slots } = await ask("schedules.backfill", { name, ...span() });
        tell(`${name}: ${manyOf(slots.length, "slot")} fired`);
        onDone();
      }}
    >
      <label class="field">
        <span>From</span>
        <input
          type="datetime-local"
          value={from}
          onInput={({ currentTarget }) => (setFrom(currentTarget.value), setCount(undefined))}
        />
      </label>
      <label class="field">
        <span>To</span>
        <input
          type="datetime-local"
          value={to}
          onInput={({ currentTarget }) => (setTo(currentTarget.value), setCount(undefined))}
        />
      </label>
      <div class="row">
        <Button
          onPress={async () => {
            const { slots, already } = await ask("schedules.backfill", { name, ...span(), dryRun: true });
            setCount(`${manyOf(slots.length, "slot")} would fire, ${already} were decided already`);
          }}
        >
          Count
        </Button>
        <span class="soft">{count}</span>
      </div>
    </Confirm>
  );
}

/** As the field of a form takes it, in this browser's zone. */
function localText(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
