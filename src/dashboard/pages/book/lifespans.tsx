// The sessions of the last day as bars on one line of time: who ran when, where processes were started anew, and which one was lost.
import { toneOf } from "../../parts/status.tsx";
import { duration, exact, now } from "../../state/clock.ts";
import { href, segment } from "../../state/url.ts";
import type { Session } from "./sessions.tsx";

const shownMs = 86_400_000;
const shownMax = 12;

export function Lifespans({ sessions }: { readonly sessions: readonly Session[] }) {
  const until = now.value;
  const since = until - shownMs;
  const shown = sessions.filter(({ stoppedAt }) => (stoppedAt ?? until) > since).slice(0, shownMax);
  if (shown.length < 2) return null;
  const share = (at: number): number => (100 * Math.max(0, at - since)) / shownMs;
  return (
    <ul class="lifespans" aria-label="The last day">
      {shown.map((session) => {
        const { id, status, startedAt, stoppedAt, metadata } = session;
        const end = stoppedAt ?? until;
        const what = `${nameOf(session)} ${status}, from ${exact(startedAt)} for ${duration(end - startedAt)}`;
        return (
          <li key={id}>
            <a class="cut" href={href(`/sessions/${segment(id)}`)} aria-label={what}>
              {typeof metadata?.["program"] === "string" ? `${metadata["program"]} · ` : ""}
              {nameOf(session)}
            </a>
            <span class="lifespan" aria-hidden="true" title={what}>
              <i
                class={toneOf(status)}
                style={{
                  left: `${Math.min(99.6, share(startedAt))}%`,
                  width: `${Math.max(0.4, share(end) - share(startedAt))}%`,
                }}
              />
            </span>
          </li>
        );
      })}
      <li aria-hidden="true" class="small faint">
        <span />
        <span class="row">
          <span class="grow">{exact(since).slice(0, 16)}</span>
          <span>now</span>
        </span>
      </li>
    </ul>
  );
}

export function nameOf({ kind, host, pid }: Pick<Session, "kind" | "host" | "pid">): string {
  return kind === "remote" ? "remote worker" : `${host ?? "?"} : ${pid ?? "?"}`;
}
