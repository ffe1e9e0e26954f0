/** How much of something is taken, as a bar with its words. */
export function Meter({
  value,
  max,
  label,
}: {
  readonly value: number;
  readonly max: number | null;
  readonly label: string;
}) {
  if (max === null || max === 0) return <span class="soft">{label}</span>;
  return (
    <span class="meter" title={label}>
      <span class="meter-bar" aria-hidden="true">
        <i style={{ width: `${Math.min(100, (100 * value) / max)}%` }} />
      </span>
      <span>{label}</span>
    </span>
  );
}
