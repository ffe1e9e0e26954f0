import { useState } from "preact/hooks";
import type { VerbInput } from "../../../client/verbs.ts";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, useUrl } from "../../state/url.ts";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

export function SubmitDialog({ onClose }: { readonly onClose: () => void }) {
  const go = useUrl();
  const [method, setMethod] = useState<(typeof methods)[number]>("POST");
  const [url, setUrl] = useState("");
  const [headers, setHeaders] = useState("");
  const [body, setBody] = useState<FormValue>({ value: {}, problem: undefined });
  const [attempts, setAttempts] = useState("1");
  const [tags, setTags] = useState("");
  const [delay, setDelay] = useState("");
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const hasBody = method !== "GET" && method !== "DELETE";

  async function submit(): Promise<void> {
    setFailure(undefined);
    const lines = headers.split("\n").filter((line) => line.trim() !== "");
    const input = {
      url,
      method,
      attempts: Number(attempts),
      ...(hasBody && body.value !== undefined ? { jsonBody: body.value } : {}),
      ...(lines.length === 0 ? {} : { headers: lines }),
      ...(tags.trim() === "" ? {} : { tags: tags.split(",").map((tag) => tag.trim()) }),
      ...(delay === "" ? {} : { in: delay }),
    };
    try {
      const { id, name } = await ask("calls.submit", input as unknown as VerbInput<"calls.submit">);
      tell(`${name} is submitted`, { href: href(`/calls/${segment(id)}`) });
      onClose();
      go.go(`/calls/${segment(id)}`);
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title="Submit a call" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="row top-aligned">
          <label class="field method">
            <span>Method</span>
            <select value={method} onChange={({ currentTarget }) => setMethod(currentTarget.value as typeof method)}>
              {methods.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label class="field grow">
            <span>URL</span>
            <input
              type="text"
              required
              placeholder="https://stock.example/reserve"
              value={url}
              onInput={({ currentTarget }) => setUrl(currentTarget.value)}
            />
          </label>
        </div>
        <label class="field">
          <span>
            Headers <span class="faint">one a line</span>
          </span>
          <textarea
            class="mono"
            rows={2}
            placeholder="accept: application/json"
            value={headers}
            onInput={({ currentTarget }) => setHeaders(currentTarget.value)}
          />
        </label>
        {hasBody ? <SchemaForm label="Body" schema={null} value={body} onChange={setBody} /> : null}
        <div class="columns narrow">
          <label class="field">
            <span>Attempts</span>
            <input
              type="number"
              min={1}
              value={attempts}
              onInput={({ currentTarget }) => setAttempts(currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>Starts in</span>
            <input
              type="text"
              placeholder="now, or 5m"
              value={delay}
              onInput={({ currentTarget }) => setDelay(currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>Tags</span>
            <input
              type="text"
              placeholder="stock, eu"
              value={tags}
              onInput={({ currentTarget }) => setTags(currentTarget.value)}
            />
          </label>
        </div>
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" whyNot={whyNot("operate") ?? body.problem}>
            Submit
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
