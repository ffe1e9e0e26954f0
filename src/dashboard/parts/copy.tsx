import { useState } from "preact/hooks";
import { afterAnywhere } from "../../core/anywhere.ts";
import { Icon } from "./icon.tsx";

type CopyProps = { readonly text: string | (() => string); readonly label: string; readonly children?: string };

export function CopyButton({ text, label, children }: CopyProps) {
  const [isDone, setDone] = useState(false);
  async function copy(): Promise<void> {
    await putOnClipboard(typeof text === "string" ? text : text());
    setDone(true);
    afterAnywhere(1500, () => setDone(false));
  }
  return (
    <button type="button" class="copy" aria-label={label} title={label} onClick={() => void copy()}>
      <Icon name={isDone ? "check" : "copy"} size={13} />
      {children === undefined ? null : <span>{isDone ? "Copied" : children}</span>}
      <span class="sr" role="status">
        {isDone ? "Copied" : ""}
      </span>
    </button>
  );
}

/** Also on a page that came without TLS, where browsers have no clipboard for scripts. */
export async function putOnClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  return undefined;
}

/** An id, short enough for a table: its end is what tells it from its neighbours. */
export function Id({ id, href }: { readonly id: string; readonly href?: string }) {
  const short = id.length > 13 ? `…${id.slice(-8)}` : id;
  return (
    <span class="id">
      {href === undefined ? (
        <code title={id}>{short}</code>
      ) : (
        <a href={href} title={id}>
          <code>{short}</code>
        </a>
      )}
    </span>
  );
}
