import { Button } from "../parts/button.tsx";
import { dismiss, toasts } from "../state/toast.ts";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, href }) => (
        <div key={id} class={`toast ${kind}`}>
          <bdi class="grow">{text}</bdi>
          {href === undefined ? null : <a href={href}>Show</a>}
          <Button icon="close" label="Dismiss" kind="quiet" onPress={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
