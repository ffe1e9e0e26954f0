// Pauses something with a note for those who look at it later, and lets it go on.
import { useState } from "preact/hooks";
import { whyNot } from "../state/book.ts";
import { Button } from "./button.tsx";
import { Confirm } from "./dialog.tsx";
import { Time } from "./time.tsx";

export type Paused = { readonly at: number; readonly note: string | null } | null;

type PauseProps = {
  readonly what: string;
  readonly paused: Paused;
  readonly onPause: (note: string | undefined) => Promise<unknown>;
  readonly onResume: () => Promise<unknown>;
};

export function PauseButton({ what, paused, onPause, onResume }: PauseProps) {
  const [isAsking, setAsking] = useState(false);
  const [note, setNote] = useState("");
  if (paused !== null) {
    return (
      <Button icon="play" whyNot={whyNot("operate")} onPress={onResume}>
        Resume
      </Button>
    );
  }
  return (
    <>
      <Button icon="pause" whyNot={whyNot("operate")} onPress={() => setAsking(true)}>
        Pause
      </Button>
      {isAsking ? (
        <Confirm
          title={`Pause ${what}`}
          act="Pause"
          onClose={() => setAsking(false)}
          onAct={() => onPause(note === "" ? undefined : note)}
        >
          <label class="field">
            <span>Why, for those who look at it later</span>
            <input type="text" value={note} onInput={({ currentTarget }) => setNote(currentTarget.value)} />
          </label>
        </Confirm>
      ) : null}
    </>
  );
}

export function PausedNote({ paused }: { readonly paused: Paused }) {
  return paused === null ? null : (
    <p class="banner attention">
      <span>
        Paused <Time at={paused.at} />
        {paused.note === null ? null : (
          <>
            : <bdi>{paused.note}</bdi>
          </>
        )}
      </span>
    </p>
  );
}
