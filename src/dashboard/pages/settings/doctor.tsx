import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { ask, whyNot } from "../../state/book.ts";

type Findings = VerbAnswer<"book.doctor">;

export function Doctor() {
  const [found, setFound] = useState<Findings | undefined>(undefined);
  return (
    <Panel
      title="Doctor"
      note="checks every promise the book makes"
      actions={
        <Button
          icon="check"
          kind="main"
          whyNot={whyNot("admin", "book")}
          onPress={async () => setFound(await ask("book.doctor", {}))}
        >
          Examine the book
        </Button>
      }
    >
      {found === undefined ? (
        <p class="faint">It reads the whole book, which may take a while.</p>
      ) : found.findings.length === 0 ? (
        <p>
          <Status status="ok" /> {`${found.checks} checks, nothing found.`}
        </p>
      ) : (
        <ul class="stack tight">
          {found.findings.map(({ promise, name, count, found: examples, advice }) => (
            <li key={name} class="banner trouble">
              <div class="stack tight">
                <b>{`${promise}: ${name}`}</b>
                <span>{`${count} found`}</span>
                <code>{examples.slice(0, 5).join(", ")}</code>
                <span class="soft">{advice}</span>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
