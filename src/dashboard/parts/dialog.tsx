// A question in front of the page. The browser's own dialog keeps the focus inside and gives it back at the end.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Progress } from "../state/book.ts";
import { Button, messageOf } from "./button.tsx";

export type DialogProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  readonly wide?: boolean;
};

export function Dialog({ title, children, onClose, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // At once, so that what is typed right after the key that asked for it goes into it.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog${wide ? " wide" : ""}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-box">
        <header class="row">
          <h2 id={id} class="grow">
            {title}
          </h2>
          <Button icon="close" label="Close" kind="quiet" onPress={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

export type ConfirmProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  /** What the button says: "Retry 124 jobs". */
  readonly act: string;
  readonly kind?: "main" | "danger";
  readonly whyNot?: string | undefined;
  readonly onClose: () => void;
  /** Resolves with what to tell about it. */
  readonly onAct: (onProgress: (progress: Progress) => void) => Promise<unknown>;
};

/** Asks before it acts, shows how far that is, and stays open with the reason if it fails. */
export function Confirm({ title, children, act, kind = "main", whyNot, onClose, onAct }: ConfirmProps) {
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const [progress, setProgress] = useState<Progress | undefined>(undefined);

  async function run(): Promise<void> {
    setFailure(undefined);
    try {
      await onAct(setProgress);
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack tight">{children}</div>
      {progress === undefined ? null : <ProgressBar progress={progress} />}
      {failure === undefined ? null : (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      <footer class="row end">
        <Button onPress={onClose}>Leave it</Button>
        <Button kind={kind} whyNot={whyNot} onPress={run}>
          {act}
        </Button>
      </footer>
    </Dialog>
  );
}

export function ProgressBar({ progress: { done, total } }: { readonly progress: Progress }) {
  return (
    <div class="stack tight">
      <progress max={total ?? undefined} value={total === null ? undefined : done} aria-label="Progress" />
      <small class="soft">{total === null ? `${done} done` : `${done} of ${total}`}</small>
    </div>
  );
}
