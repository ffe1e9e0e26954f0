import { Icon } from "../parts/icon.tsx";
import { href, useUrl } from "../state/url.ts";
import { places, sectionTitles, type Place } from "./places.ts";

export type Counts = Readonly<
  Record<string, { readonly count: number; readonly tone: "quiet" | "bad" | "warn" | "busy" }>
>;

export function Nav({
  counts,
  isOpen,
  onLeave,
}: {
  readonly counts: Counts;
  readonly isOpen: boolean;
  readonly onLeave: () => void;
}) {
  const { path } = useUrl();
  const sections = Object.entries(sectionTitles);
  return (
    <nav class={`nav${isOpen ? " open" : ""}`} aria-label="Pages">
      <a class="brand" href={href("/")}>
        <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
          <rect x="5" y="3" width="22" height="26" rx="4" class="brand-cover" />
          <path d="M10 3v26" class="brand-spine" />
          <path d="M14 11h9M14 16h9M14 21h5" class="brand-lines" />
        </svg>
        Daybook
      </a>
      {sections.map(([section, title]) => (
        <div key={section} class="nav-section">
          {title === "" ? null : <h2>{title}</h2>}
          <ul>
            {places
              .filter((place) => place.section === section)
              .map((place) => (
                <li key={place.path}>
                  <NavLink place={place} isCurrent={isHere(place, path)} count={counts[place.path]} onLeave={onLeave} />
                </li>
              ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

type LinkProps = {
  readonly place: Place;
  readonly isCurrent: boolean;
  readonly count: Counts[string] | undefined;
  readonly onLeave: () => void;
};

function NavLink({ place: { path, title, icon, letter }, isCurrent, count, onLeave }: LinkProps) {
  return (
    <a
      href={href(path)}
      aria-current={isCurrent ? "page" : undefined}
      title={`${title} (g ${letter})`}
      onClick={onLeave}
    >
      <Icon name={icon} />
      <span class="grow cut">{title}</span>
      {count === undefined || count.count === 0 ? null : (
        <span class={`nav-count ${count.tone}`}>{shortCount(count.count)}</span>
      )}
    </a>
  );
}

function isHere({ path }: Place, current: string): boolean {
  return path === "/" ? current === "/" : current === path || current.startsWith(`${path}/`);
}

export function shortCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 10_000) return `${(count / 1000).toFixed(1)}k`;
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}
