// What led to a thing and what came of it, as a drawing that can be walked: from left to right as it happened, each thing a link to
// its page. The arrow keys go along the lines.
import { useEffect, useRef, useState } from "preact/hooks";
import type { VerbAnswer } from "../../client/verbs.ts";
import type { Topic } from "../state/live.ts";
import { href, segment } from "../state/url.ts";
import { useVerb } from "../state/use-verb.ts";
import { Answer, Panel } from "./page.tsx";
import { Status, toneOf } from "./status.tsx";

type Causes = VerbAnswer<"book.causes">;
type Node = Causes["nodes"][number];
type Edge = Causes["edges"][number];

type Placed = {
  readonly node: Node;
  readonly how: Edge["kind"] | undefined;
  readonly column: number;
  readonly row: number;
};
type More = { readonly of: string; readonly count: number; readonly column: number; readonly row: number };
type Drawn = {
  readonly placed: readonly Placed[];
  readonly more: readonly More[];
  readonly columns: number;
  readonly rows: number;
};

const box = { width: 172, height: 42, gapX: 70, gapY: 14 };
const stepX = box.width + box.gapX;
const stepY = box.height + box.gapY;
/** Of many effects of one cause, as many are drawn at first. */
const drawnFirst = 5;
const topics: readonly Topic[] = ["job.created", "run.ended", "event.published", "record.committed"];

/** Nothing where it stands alone. */
export function CausesPanel({ id }: { readonly id: string }) {
  const causes = useVerb("book.causes", { id }, { topics });
  if (causes.data !== undefined && causes.data.nodes.length < 2) return null;
  return (
    <Panel title="Cause and effects" note="what led to it, and what came of it">
      <Answer of={causes}>
        {(data) => (
          <>
            <CauseGraph of={data} />
            {data.cut ? <p class="faint small">There is more than is drawn here.</p> : null}
          </>
        )}
      </Answer>
    </Panel>
  );
}

export function CauseGraph({ of }: { readonly of: Causes }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const drawn = layOut(of, opened);
  const frame = useRef<HTMLDivElement>(null);
  const at = new Map(drawn.placed.map((each) => [each.node.key, each]));
  const width = drawn.columns * stepX - box.gapX;
  const height = drawn.rows * stepY - box.gapY;
  const asked = at.get(of.asked);

  useEffect(() => {
    const element = frame.current;
    if (element === null || asked === undefined) return;
    element.scrollLeft = asked.column * stepX - element.clientWidth / 2 + box.width / 2;
    element.scrollTop = asked.row * stepY - element.clientHeight / 2 + box.height / 2;
  }, [of.asked]);

  function walk(event: KeyboardEvent): void {
    const key = (event.target as Element).closest("[data-key]")?.getAttribute("data-key");
    const to = key == null ? undefined : neighbour(of, drawn, { key, arrow: event.key });
    const found = to === undefined ? undefined : [...(frame.current?.querySelectorAll<SVGElement>("[data-key]") ?? [])];
    const next = found?.find((element) => element.dataset["key"] === to);
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  }

  return (
    <div
      class="causes"
      ref={frame}
      role="group"
      aria-label="Cause graph: the arrow keys walk along it"
      onKeyDown={walk}
    >
      <svg width={width + 4} height={height + 4} viewBox={`-2 -2 ${width + 4} ${height + 4}`}>
        {of.edges.map(({ from, to, kind }) => {
          const [cause, effect] = [at.get(from), at.get(to)];
          return cause === undefined || effect === undefined ? null : (
            <Line key={`${from} ${to}`} from={cause} to={effect} kind={kind} />
          );
        })}
        {drawn.more.map((each) => (
          <g key={each.of}>
            <path class="causes-line" d={lineOf(at.get(each.of) ?? each, each)} />
            <foreignObject x={each.column * stepX} y={each.row * stepY + 6} width={box.width} height={30}>
              <button type="button" class="link" onClick={() => setOpened(new Set([...opened, each.of]))}>
                {`${each.count} more`}
              </button>
            </foreignObject>
          </g>
        ))}
        {drawn.placed.map((each) => (
          <Box key={each.node.key} of={each} isAsked={each.node.key === of.asked} />
        ))}
      </svg>
    </div>
  );
}

function Box({ of: { node, how, column, row }, isAsked }: { readonly of: Placed; readonly isAsked: boolean }) {
  const what = `${how === undefined || how === "caused" ? "" : `${how}: `}${node.kind} ${node.name}`;
  return (
    <foreignObject x={column * stepX} y={row * stepY} width={box.width} height={box.height}>
      <a
        href={pageOf(node)}
        data-key={node.key}
        class={`causes-box ${node.status === null ? "" : toneOf(node.status)}`}
        aria-current={isAsked ? "true" : undefined}
        aria-label={`${what.slice(0, 300)}${node.status === null ? "" : `, ${node.status}`}`}
        title={what.slice(0, 300)}
      >
        <bdi class="cut">{node.name.slice(0, 80)}</bdi>
        <span class="causes-kind">
          {node.kind}
          {node.status === null ? null : <Status status={node.status} />}
        </span>
      </a>
    </foreignObject>
  );
}

function Line({ from, to, kind }: { readonly from: Placed; readonly to: Placed; readonly kind: Edge["kind"] }) {
  return (
    <>
      <path class="causes-line" d={lineOf(from, to)} />
      {kind === "caused" ? null : (
        <text class="causes-how" x={to.column * stepX - 6} y={to.row * stepY + box.height / 2 - 5} text-anchor="end">
          {kind}
        </text>
      )}
    </>
  );
}

type Spot = Pick<Placed, "column" | "row">;

function lineOf(from: Spot, to: Spot): string {
  const [x, y] = [from.column * stepX + box.width, from.row * stepY + box.height / 2];
  const [endX, endY] = [to.column * stepX, to.row * stepY + box.height / 2];
  const middle = x + 14;
  return `M${x} ${y} H${middle} V${endY} H${endX}`;
}

/** A cause stands where its first effect stands, so that a chain is one straight line. */
function layOut({ nodes, edges, root, asked }: Causes, opened: ReadonlySet<string>): Drawn {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const below = Map.groupBy(edges, ({ from }) => from);
  const wanted = new Set(pathTo(asked, edges));
  const placed: Placed[] = [];
  const more: More[] = [];
  let rows = 0;
  let columns = 0;
  const place = (key: string, how: Edge["kind"] | undefined, column: number): void => {
    const node = byKey.get(key);
    // Each is drawn once, also where two lines lead to it.
    if (node === undefined || !byKey.delete(key)) return;
    columns = Math.max(columns, column + 1);
    const row = rows;
    placed.push({ node, how, column, row });
    const all = below.get(key) ?? [];
    const shown = opened.has(key) ? all : all.filter(({ to }, index) => index < drawnFirst || wanted.has(to));
    for (const { to, kind } of shown) place(to, kind, column + 1);
    if (shown.length < all.length) {
      more.push({ of: key, count: all.length - shown.length, column: column + 1, row: rows });
      columns = Math.max(columns, column + 2);
      rows += 1;
    }
    if (rows === row) rows += 1;
  };
  place(root, undefined, 0);
  return { placed, more, columns, rows };
}

function pathTo(asked: string, edges: readonly Edge[]): string[] {
  const causeOf = new Map(edges.map(({ from, to }) => [to, from]));
  const path: string[] = [];
  for (let key: string | undefined = asked; key !== undefined && !path.includes(key); key = causeOf.get(key))
    path.push(key);
  return path;
}

type Step = { readonly key: string; readonly arrow: string };

function neighbour({ edges }: Causes, { placed }: Drawn, { key, arrow }: Step): string | undefined {
  const shown = new Set(placed.map(({ node }) => node.key));
  const cause = edges.find(({ to }) => to === key)?.from;
  if (arrow === "ArrowLeft") return cause;
  if (arrow === "ArrowRight") return edges.find(({ from, to }) => from === key && shown.has(to))?.to;
  if (arrow !== "ArrowUp" && arrow !== "ArrowDown") return undefined;
  const column = placed.find(({ node }) => node.key === key)?.column;
  const beside = placed.filter((each) => each.column === column);
  const index = beside.findIndex(({ node }) => node.key === key);
  return beside[index + (arrow === "ArrowUp" ? -1 : 1)]?.node.key;
}

const folders: Readonly<Record<Node["kind"], string>> = {
  job: "jobs",
  delivery: "jobs",
  event: "events",
  call: "calls",
  run: "runs",
  schedule: "schedules",
  commit: "commits",
};

function pageOf({ kind, id }: Node): string {
  return href(`/${folders[kind]}/${segment(id)}`);
}
