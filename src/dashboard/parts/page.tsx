// What every page begins with, and the boxes that it is made of.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { VerbInput, VerbKey } from "../../client/verbs.ts";
import type { DaybookError } from "../../core/daybook-error.ts";
import { asCommand, asCurl, asLink, asTypeScript } from "../state/copy-as.ts";
import type { Shown } from "../state/use-verb.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { Menu } from "./menu.tsx";

export type Crumb = { readonly text: string; readonly href: string };

type PageProps<Key extends VerbKey> = {
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  /** Beside the title: a status, an id. */
  readonly beside?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** What the page asks, for "copy as" and its JSON twin. */
  readonly asks?: { readonly verb: Key; readonly input: VerbInput<Key> };
  readonly children: ComponentChildren;
};

export function Page<Key extends VerbKey>({ title, crumbs, beside, actions, asks, children }: PageProps<Key>) {
  useEffect(() => {
    document.title = `${title} · Daybook`;
  }, [title]);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <header class="page-head">
        {crumbs === undefined ? null : (
          <nav aria-label="Where this is" class="crumbs">
            {crumbs.map(({ text, href }) => (
              <a key={href} href={href}>
                {text}
              </a>
            ))}
          </nav>
        )}
        <div class="row wrap">
          <h1 class="cut">
            <bdi>{title}</bdi>
          </h1>
          {beside}
          <span class="grow" />
          {actions}
          {asks === undefined ? null : <CopyAs {...asks} />}
        </div>
      </header>
      {children}
    </main>
  );
}

function CopyAs<Key extends VerbKey>(asks: { readonly verb: Key; readonly input: VerbInput<Key> }) {
  const link = asLink(asks);
  return (
    <Menu label="Copy as" icon="copy">
      <CopyButton text={() => asCommand(asks)} label="Copy as a command">
        Command line
      </CopyButton>
      <CopyButton text={() => asCurl(asks)} label="Copy as curl">
        curl
      </CopyButton>
      <CopyButton text={() => asTypeScript(asks)} label="Copy as TypeScript">
        TypeScript
      </CopyButton>
      {link === undefined ? null : (
        <a class="menu-link" href={link} target="_blank" rel="noreferrer">
          <Icon name="link" size={13} /> This page as JSON
        </a>
      )}
    </Menu>
  );
}

type PanelProps = {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly flush?: boolean;
  /** What is in it is bad news. */
  readonly tone?: "bad";
};

export function Panel({ title, note, actions, children, flush = false, tone }: PanelProps) {
  return (
    <section class={`panel${flush ? " flush" : ""}${tone === undefined ? "" : ` ${tone}`}`} aria-label={title}>
      <header class="panel-head row wrap">
        <h2>{title}</h2>
        {note === undefined ? null : <span class="soft small">{note}</span>}
        <span class="grow" />
        {actions}
      </header>
      {children}
    </section>
  );
}

/** In place of what this login may not see. */
export function OutOfReach({ what, why }: { readonly what: string; readonly why: string }) {
  return (
    <Panel title={what}>
      <p class="soft">{why}.</p>
    </Panel>
  );
}

type Facts = readonly (readonly [name: string, value: ComponentChildren])[];

/** Names and values. What has no value is left out. */
export function KeyValues({ facts }: { readonly facts: Facts }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

type EmptyProps = {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
  /** What a reader can run to have something here. */
  readonly snippet?: string;
};

/** An empty page teaches. */
export function Empty({ icon, title, children, snippet }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      {children === undefined ? null : <p class="soft">{children}</p>}
      {snippet === undefined ? null : <Code text={snippet} label="Example" />}
    </div>
  );
}

export function Code({
  text,
  label,
  first,
}: {
  readonly text: string;
  readonly label: string;
  readonly first?: number;
}) {
  return (
    <div class="code" role="group" aria-label={label}>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
      <pre tabIndex={0}>
        {first === undefined
          ? text
          : text.split("\n").map((line, index) => (
              <span key={index} class="code-line">
                <i aria-hidden="true">{first + index}</i>
                {`${line}\n`}
              </span>
            ))}
      </pre>
    </div>
  );
}

/** What came back, or why nothing did. What was read before stays, below the reason. */
export function Answer<T>({
  of,
  children,
}: {
  readonly of: Shown<T>;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, error, again } = of;
  return (
    <>
      {error === undefined ? null : <Failure error={error} onAgain={again} />}
      {data === undefined ? error === undefined ? <Skeleton /> : null : children(data)}
    </>
  );
}

export function Failure({ error, onAgain }: { readonly error: DaybookError; readonly onAgain?: () => void }) {
  return (
    <div class="failure row wrap" role="alert">
      <Icon name="warn" />
      <span class="grow">
        <b>{error.code.replaceAll("_", " ")}</b> <bdi>{error.message}</bdi>
      </span>
      {onAgain === undefined ? null : (
        <Button icon="retry" onPress={onAgain}>
          Try again
        </Button>
      )}
    </div>
  );
}

function Skeleton() {
  return (
    <div class="skeleton" role="status" aria-label="Reading">
      <i />
      <i />
      <i />
    </div>
  );
}

export type Tab = { readonly id: string; readonly text: string; readonly count?: number | string | undefined };

type TabsProps = {
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly onChoose: (id: string) => void;
  readonly label: string;
};

export function Tabs({ tabs, current, onChoose, label }: TabsProps) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {tabs.map(({ id, text, count }) => (
        <button key={id} type="button" class="tab" aria-pressed={id === current} onClick={() => onChoose(id)}>
          {text}
          {count === undefined ? null : <span class="count">{count}</span>}
        </button>
      ))}
    </div>
  );
}

/** 12,345. */
export function Count({ of }: { readonly of: number }) {
  return <>{of.toLocaleString("en-US")}</>;
}

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}
