import { duration, exact, now, relative } from "../state/clock.ts";

type TimeProps = { readonly at: number | null | undefined; readonly zone?: string; readonly whole?: boolean };

/** A moment as people say it, with the exact one on hover and for readers of screens. */
export function Time({ at, zone, whole = false }: TimeProps) {
  if (at === null || at === undefined) return <span class="faint">–</span>;
  const text = exact(at, { own: zone });
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at, { own: zone, ms: true })} class="cut">
      {whole ? text : relative(at, now.value)}
    </time>
  );
}

export function Took({ ms }: { readonly ms: number | null | undefined }) {
  return ms === null || ms === undefined ? (
    <span class="faint">–</span>
  ) : (
    <span title={`${ms} ms`}>{duration(ms)}</span>
  );
}
