import { LocationProvider, Route, Router, lazy } from "preact-iso";
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { Empty, Page } from "../parts/page.tsx";
import { isLoggedOut, prefix, readCaller, tenant } from "../state/book.ts";
import { startLive } from "../state/live.ts";
import { href } from "../state/url.ts";
import { useCounts } from "./counts.ts";
import { helpLines, useKeys } from "./keys.ts";
import { Login } from "./login.tsx";
import { Nav } from "./nav.tsx";
import { Palette } from "./palette.tsx";
import { Toasts } from "./toasts.tsx";
import { TopBar } from "./top-bar.tsx";

type Load = () => Promise<FunctionComponent>;

/** Each page is loaded when it is gone to. */
const pages: readonly (readonly [path: string, load: Load])[] = [
  ["/", async () => (await import("../pages/overview/overview.tsx")).Overview],
  ["/jobs", async () => (await import("../pages/jobs/jobs.tsx")).Jobs],
  ["/jobs/:id", async () => (await import("../pages/jobs/job.tsx")).JobPage],
  ["/queues", async () => (await import("../pages/queues/queues.tsx")).Queues],
  ["/queues/:queue", async () => (await import("../pages/queues/queue.tsx")).QueuePage],
  ["/groups", async () => (await import("../pages/groups/groups.tsx")).Groups],
  ["/groups/:id", async () => (await import("../pages/groups/group.tsx")).GroupPage],
  ["/templates", async () => (await import("../pages/groups/templates.tsx")).Templates],
  ["/templates/:name", async () => (await import("../pages/groups/template.tsx")).TemplatePage],
  ["/schedules", async () => (await import("../pages/schedules/schedules.tsx")).Schedules],
  ["/schedules/:name", async () => (await import("../pages/schedules/schedule.tsx")).SchedulePage],
  ["/events", async () => (await import("../pages/events/events.tsx")).Events],
  ["/events/:id", async () => (await import("../pages/events/event.tsx")).EventPage],
  ["/listeners", async () => (await import("../pages/events/listeners.tsx")).Listeners],
  ["/listeners/:name", async () => (await import("../pages/events/listener.tsx")).ListenerPage],
  ["/apps", async () => (await import("../pages/events/apps.tsx")).Apps],
  ["/apps/:key", async () => (await import("../pages/events/app.tsx")).AppPage],
  ["/dead-letters", async () => (await import("../pages/events/dead-letters.tsx")).DeadLetters],
  ["/dead-letters/:id", async () => (await import("../pages/events/dead-letter.tsx")).DeadLetterPage],
  ["/calls", async () => (await import("../pages/calls/calls.tsx")).Calls],
  ["/calls/:id", async () => (await import("../pages/calls/call.tsx")).CallPage],
  ["/sinks", async () => (await import("../pages/calls/sinks.tsx")).Sinks],
  ["/sinks/:name", async () => (await import("../pages/calls/sink.tsx")).SinkPage],
  ["/records", async () => (await import("../pages/records/records.tsx")).Records],
  ["/records/:type", async () => (await import("../pages/records/type.tsx")).RecordType],
  ["/records/:type/:key/:to?/:instance?", async () => (await import("../pages/records/record.tsx")).RecordPage],
  ["/commits", async () => (await import("../pages/records/commits.tsx")).Commits],
  ["/commits/:id", async () => (await import("../pages/records/commit.tsx")).CommitPage],
  ["/runs", async () => (await import("../pages/runs/runs.tsx")).Runs],
  ["/runs/:id", async () => (await import("../pages/runs/run.tsx")).RunPage],
  ["/sessions", async () => (await import("../pages/book/sessions.tsx")).Sessions],
  ["/sessions/:id", async () => (await import("../pages/book/session.tsx")).SessionPage],
  ["/settings", async () => (await import("../pages/settings/settings.tsx")).Settings],
];

const routes = pages.map(([path, load]) => [path, lazy(load)] as const);

export function App() {
  return (
    <LocationProvider scope={prefix === "" ? "/" : prefix}>
      <Shell />
    </LocationProvider>
  );
}

function Shell() {
  const [asked, setAsked] = useState<"palette" | "help" | undefined>(undefined);
  const [isNavOpen, setNavOpen] = useState(false);
  const counts = useCounts();
  useKeys({ openPalette: () => setAsked("palette"), openHelp: () => setAsked("help") });
  useEffect(() => {
    void readCaller().catch(() => undefined);
    startLive();
  }, []);

  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        To the page
      </button>
      <div class="shell">
        <Nav counts={counts} isOpen={isNavOpen} onLeave={() => setNavOpen(false)} />
        {isNavOpen ? (
          <button type="button" class="veil" aria-label="Close the pages" onClick={() => setNavOpen(false)} />
        ) : null}
        <div class="side">
          <TopBar
            onMenu={() => setNavOpen(!isNavOpen)}
            onPalette={() => setAsked("palette")}
            onHelp={() => setAsked("help")}
          />
          <Router key={tenant.value ?? ""}>
            {routes.map(([path, Shown]) => (
              <Route key={path} path={prefix + path} component={Shown} />
            ))}
            <Route default component={Nowhere} />
          </Router>
        </div>
      </div>
      {asked === "palette" ? <Palette onClose={() => setAsked(undefined)} /> : null}
      {asked === "help" ? <Help onClose={() => setAsked(undefined)} /> : null}
      {isLoggedOut.value ? <Login /> : null}
      <Toasts />
    </>
  );
}

function Nowhere() {
  return (
    <Page title="No such page">
      <Empty icon="search" title="There is no page here">
        <a href={href("/")}>Overview</a> is where everything begins.
      </Empty>
    </Page>
  );
}

function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {helpLines.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
