/** The run of a number as a line without axes; what it says stands beside it in words. */
export function Sparkline({ values, tone = "accent" }: { readonly values: readonly number[]; readonly tone?: string }) {
  const most = Math.max(1, ...values);
  const step = values.length > 1 ? 100 / (values.length - 1) : 100;
  const points = values.map((value, index) => `${(index * step).toFixed(2)},${(23 - (value / most) * 21).toFixed(2)}`);
  return (
    <svg
      class={`sparkline ${tone}`}
      viewBox="0 0 100 24"
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <polygon points={`0,24 ${points.join(" ")} 100,24`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
