import { Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { zoneName } from "../../state/clock.ts";
import { useVerb } from "../../state/use-verb.ts";

/** The next ten, by the schedule's clock and by the reader's, with a mark where the clocks change. */
export function Fires({ name, zone }: { readonly name: string; readonly zone: string }) {
  const here = zoneName(zone);
  const { data, error } = useVerb("schedules.preview", { name, here }, { topics: ["schedule.decided"] });
  const fires = data === undefined ? [] : "fires" in data ? data.fires : data.after;
  return (
    <Panel title="Next fires" note={here === zone ? zone : `${zone}, and ${here}`}>
      {error === undefined ? null : <p class="faint">{error.message}</p>}
      <ol class="fires">
        {fires.map(({ at, local, there, dst }) => (
          <li key={at} class="row">
            <span class="grow cut">
              {local.replace("T", " ")}
              {there === local ? null : <span class="faint"> · {there.replace("T", " ")}</span>}
            </span>
            {dst === null ? null : (
              <Status status="attention" note={dst === "gap" ? "the clock leaves this out" : "comes twice"} />
            )}
            <Time at={at} zone={zone} />
          </li>
        ))}
      </ol>
    </Panel>
  );
}
