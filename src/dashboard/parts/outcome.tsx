// What a run left behind: its error, its log, and the program that it started.
import type { VerbAnswer } from "../../client/verbs.ts";
import { manyOf } from "./bulk.tsx";
import { CopyButton } from "./copy.tsx";
import { bytesText, Code, KeyValues, Panel } from "./page.tsx";
import { Table, type Column } from "./table.tsx";
import { Time } from "./time.tsx";

type Run = VerbAnswer<"runs.show">;
type Command = NonNullable<NonNullable<VerbAnswer<"jobs.show">["run"]>["command"]>;
type Artifact = Command["artifacts"][number];

export function ErrorPanel({ error }: { readonly error: NonNullable<Run["error"]> }) {
  const { type, message, trace } = error;
  return (
    <Panel
      title={type}
      tone="bad"
      actions={<CopyButton text={`${type}: ${message}\n${trace ?? ""}`} label="Copy the error" />}
    >
      <p class="error-text">
        <bdi>{message}</bdi>
      </p>
      {trace === null ? null : <Code text={withoutMessage(trace, `${type}: ${message}`)} label="Trace" />}
    </Panel>
  );
}

/** The trace repeats what stands above it. */
function withoutMessage(trace: string, said: string): string {
  const rest = trace.startsWith(said) ? trace.slice(said.length).replace(/^\n/, "") : trace;
  return rest === "" ? trace : rest.replaceAll(/^ {4}/gm, "");
}

export function LogPanel({ logs }: { readonly logs: Run["logs"] }) {
  if (logs.length === 0) return null;
  return (
    <Panel title="Log" note={manyOf(logs.length, "line")}>
      <ol class="log" tabIndex={0} aria-label="Log">
        {logs.map(({ at, level, message }, index) => (
          <li key={index} class={level}>
            <Time at={at} whole /> <b>{level}</b> <bdi>{message}</bdi>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

export function CommandPanel({ command }: { readonly command: Command }) {
  const { argv, host, pid, exitCode, signal, log, note, artifacts, artifactsLeftOut } = command;
  return (
    <>
      <Panel
        title="Program"
        actions={<CopyButton text={argv.map(quoted).join(" ")} label="Copy the command" />}
        note={exitOf(exitCode, signal)}
      >
        <div class="stack tight">
          <pre class="argv">{argv.map(quoted).join(" ")}</pre>
          <KeyValues
            facts={[
              ["Exit code", exitCode === null ? null : String(exitCode)],
              ["Ended by", signal],
              ["Process", pid === null ? "it could not be started" : `${pid} on ${host}`],
              ["Log file", log?.path],
              ["Note", note],
            ]}
          />
          {log === null || log.tail === "" ? null : (
            <Code text={log.tail} label={log.truncated ? "The end of its output" : "Its output"} />
          )}
        </div>
      </Panel>
      {artifacts.length === 0 ? null : (
        <Panel
          title="Artifacts"
          note={artifactsLeftOut === 0 ? manyOf(artifacts.length, "file") : `${artifactsLeftOut} more are not listed`}
          flush
        >
          <Table label="Artifacts" rows={artifacts} columns={columns} idOf={({ path }) => path} />
        </Panel>
      )}
    </>
  );
}

const columns: readonly Column<Artifact>[] = [
  { head: "File", cell: ({ path }) => <bdi title={path}>{path}</bdi>, width: "minmax(140px, 2fr)" },
  { head: "Size", cell: ({ bytes }) => bytesText(bytes), width: "80px", align: "right" },
  {
    head: "SHA-256",
    cell: ({ sha256 }) => (
      <span class="row">
        <code>{sha256.slice(0, 12)}</code>
        <CopyButton text={sha256} label="Copy the SHA-256" />
      </span>
    ),
    width: "150px",
    minor: true,
  },
];

function exitOf(exitCode: number | null, signal: string | null): string {
  if (signal !== null) return `was ended by ${signal}`;
  return exitCode === null ? "did not start" : `ended with ${exitCode}`;
}

function quoted(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
