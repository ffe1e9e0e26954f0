// What can be done. What cannot be done now stays in sight, and says why.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { DaybookError } from "../../core/daybook-error.ts";
import { tell } from "../state/toast.ts";
import { Icon, type IconName } from "./icon.tsx";

export type ButtonProps = {
  readonly children?: ComponentChildren;
  readonly icon?: IconName;
  /** For a button that shows its icon alone. */
  readonly label?: string;
  readonly kind?: "plain" | "main" | "danger" | "quiet";
  /** Why it cannot be done now; it is disabled then. */
  readonly whyNot?: string | undefined;
  readonly pressed?: boolean;
  readonly type?: "button" | "submit";
  readonly hotkey?: string;
  /** While its promise is under way the button waits; a failure is told. */
  readonly onPress?: (event: MouseEvent) => void | Promise<unknown>;
};

export function Button(props: ButtonProps) {
  const { children, icon, label, kind = "plain", whyNot, pressed, type = "button", hotkey, onPress } = props;
  const [isBusy, setBusy] = useState(false);

  async function press(event: MouseEvent): Promise<void> {
    if (whyNot !== undefined || isBusy) return;
    try {
      const under = onPress?.(event);
      if (under === undefined) return;
      setBusy(true);
      await under;
    } catch (error) {
      tell(messageOf(error), { kind: "bad" });
    } finally {
      setBusy(false);
    }
  }

  return (
    <button
      type={type}
      class={`button ${kind}${children === undefined ? " bare" : ""}`}
      aria-disabled={whyNot !== undefined || isBusy}
      aria-label={label}
      aria-pressed={pressed}
      title={whyNot ?? label}
      data-hotkey={hotkey}
      onClick={(event) => void press(event)}
    >
      {icon === undefined ? null : <Icon name={icon} size={14} />}
      {children === undefined ? null : <span>{children}</span>}
      {whyNot === undefined ? null : <span class="sr">{whyNot}</span>}
    </button>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof DaybookError || error instanceof Error ? error.message : String(error);
}
