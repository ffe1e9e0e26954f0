import { useState } from "preact/hooks";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment } from "../../state/url.ts";

export function PublishDialog({
  begun,
  onClose,
}: {
  readonly begun?: { topic: string; payload: unknown };
  readonly onClose: () => void;
}) {
  const [topic, setTopic] = useState(begun?.topic ?? "");
  const [payload, setPayload] = useState<FormValue>({ value: begun?.payload ?? {}, problem: undefined });
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<string | undefined>(undefined);

  async function publish(): Promise<void> {
    setFailure(undefined);
    try {
      const said = await ask("events.publish", { topic, payload: payload.value, ...(key === "" ? {} : { key }) });
      const heard = said.deliveries + said.live;
      tell(`${topic} is said${heard === 0 ? ", and nobody listens" : `, heard by ${heard}`}`, {
        href: href(`/events/${segment(said.id)}`),
      });
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title="Publish an event" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void publish();
        }}
      >
        <label class="field">
          <span>Topic</span>
          <input
            type="text"
            required
            placeholder="order.paid"
            value={topic}
            onInput={({ currentTarget }) => setTopic(currentTarget.value)}
          />
        </label>
        <SchemaForm label="Payload" schema={null} value={payload} onChange={setPayload} />
        <label class="field">
          <span>
            Key <span class="faint">for the order in which it is heard</span>
          </span>
          <input type="text" value={key} onInput={({ currentTarget }) => setKey(currentTarget.value)} />
        </label>
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" whyNot={whyNot("operate") ?? payload.problem}>
            Publish
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
