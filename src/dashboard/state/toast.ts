// Short messages about what was done, or could not be.
import { signal } from "@preact/signals";
import { afterAnywhere } from "../../core/anywhere.ts";

export type Toast = {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
  readonly href?: string;
};

export const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function tell(text: string, { kind = "good", href }: { kind?: "good" | "bad"; href?: string } = {}): void {
  const toast: Toast = { id: ++last, text, kind, ...(href === undefined ? {} : { href }) };
  toasts.value = [...toasts.value.slice(-3), toast];
  // A failure stays until it is read.
  if (kind === "good") afterAnywhere(6000, () => dismiss(toast.id));
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
