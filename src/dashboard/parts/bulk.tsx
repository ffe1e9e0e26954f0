// Acts on everything that a filter fits: it counts first, asks, shows how far it is, and says what came of it.
import { useEffect, useState } from "preact/hooks";
import type { VerbAnswer, VerbInput, VerbKey } from "../../client/verbs.ts";
import { ask } from "../state/book.ts";
import { tell } from "../state/toast.ts";
import { Button, messageOf } from "./button.tsx";
import { Confirm } from "./dialog.tsx";
import type { IconName } from "./icon.tsx";

export type BulkProps<Key extends VerbKey> = {
  /** The verb; without `apply` it only counts. */
  readonly verb: Key;
  readonly input: VerbInput<Key>;
  readonly countOf: (answer: VerbAnswer<Key>) => number;
  /** "Retry", and of what: "job". */
  readonly act: string;
  readonly noun: string;
  /** What the button says; default "Retry all that match". */
  readonly label?: string;
  /** What the filter is, in words. */
  readonly what: string;
  readonly icon: IconName;
  readonly kind?: "main" | "danger";
  readonly whyNot?: string | undefined;
  readonly onDone?: () => void;
};

export function Bulk<Key extends VerbKey>(props: BulkProps<Key>) {
  const [isOpen, setOpen] = useState(false);
  const { act, icon, whyNot, label = `${act} all that match` } = props;
  return (
    <>
      <Button icon={icon} whyNot={whyNot} onPress={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen ? <BulkDialog {...props} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function BulkDialog<Key extends VerbKey>(props: BulkProps<Key> & { readonly onClose: () => void }) {
  const { verb, input, countOf, act, noun, what, kind = "main", onClose, onDone } = props;
  const { label = `${act} all that match` } = props;
  const [count, setCount] = useState<number | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);
  useEffect(() => {
    ask(verb, input).then(
      (answer) => setCount(countOf(answer)),
      (error: unknown) => setFailure(messageOf(error)),
    );
  }, []);
  return (
    <Confirm
      title={label}
      kind={kind}
      act={count === undefined ? act : `${act} ${manyOf(count, noun)}`}
      whyNot={count === undefined ? (failure ?? "They are being counted") : count === 0 ? "There are none" : undefined}
      onClose={onClose}
      onAct={async (onProgress) => {
        const done = await ask(verb, { ...input, apply: true } as VerbInput<Key>, { onProgress });
        tell(`${act}: ${manyOf(countOf(done), noun)}`);
        onDone?.();
      }}
    >
      <p>
        {count === undefined ? (failure ?? "Counting …") : `${manyOf(count, noun)} match`}{" "}
        <code>{what === "" ? "everything" : what}</code>
      </p>
    </Confirm>
  );
}

export function manyOf(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
