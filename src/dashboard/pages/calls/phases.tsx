// Where the time of an attempt went: a bar for each phase, one after the other.
import type { VerbAnswer } from "../../../client/verbs.ts";
import { duration } from "../../state/clock.ts";

type Times = VerbAnswer<"calls.show">["attempts"][number]["phases"];

const names = {
  dnsMs: "address",
  connectMs: "connect",
  tlsMs: "TLS",
  firstByteMs: "first byte",
  rest: "rest",
} as const;

export function Phases({ phases }: { readonly phases: Times }) {
  const { totalMs } = phases;
  if (totalMs === null) return null;
  const known = [phases.dnsMs, phases.connectMs, phases.tlsMs, phases.firstByteMs];
  const rest = Math.max(0, totalMs - known.reduce<number>((sum, ms) => sum + (ms ?? 0), 0));
  const parts = [...known, rest].map((ms, index) => ({ name: Object.values(names)[index] ?? "", ms: ms ?? 0 }));
  const whole = Math.max(
    1,
    parts.reduce((sum, { ms }) => sum + ms, 0),
  );
  let before = 0;
  return (
    <ul class="phases" aria-label="Where the time went">
      {parts
        .filter(({ ms }) => ms > 0)
        .map(({ name, ms }) => {
          const left = before;
          before += ms;
          return (
            <li key={name}>
              <span class="small soft">{name}</span>
              <span class="phase-track" aria-hidden="true">
                <i style={{ marginLeft: `${(100 * left) / whole}%`, width: `${Math.max(1, (100 * ms) / whole)}%` }} />
              </span>
              <span class="small num">{duration(ms)}</span>
            </li>
          );
        })}
    </ul>
  );
}
