import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

type MenuProps = {
  readonly label: string;
  readonly icon: IconName;
  readonly text?: string;
  readonly children: ComponentChildren;
};

/** A button that opens a small box of choices. Escape and a press elsewhere close it. */
export function Menu({ label, icon, text, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    const outside = (event: Event): void => {
      if (event.target instanceof Node && box.current?.contains(event.target) === false) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [isOpen]);
  return (
    <div
      class="menu"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen) return;
        event.stopPropagation();
        setOpen(false);
        box.current?.querySelector("button")?.focus();
      }}
    >
      <button
        type="button"
        class="button quiet"
        aria-label={label}
        title={label}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={icon} size={14} />
        {text === undefined ? null : <span>{text}</span>}
      </button>
      <div id={id} class="menu-box" hidden={!isOpen}>
        {isOpen ? children : null}
      </div>
    </div>
  );
}
