// Makes a job by hand: by the name of its definition or from a template, with params in a form where the book knows their schema.
import { useState } from "preact/hooks";
import type { VerbInput } from "../../../client/verbs.ts";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { emptyOf, SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useSchema } from "../../state/use-schema.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Begun = { readonly name?: string; readonly template?: string; readonly params?: unknown; readonly queue?: string };

type Props = { readonly begun?: Begun; readonly onClose: () => void };

export function EnqueueDialog({ begun = {}, onClose }: Props) {
  const url = useUrl();
  const [name, setName] = useState(begun.name ?? "");
  const [params, setParams] = useState<FormValue>(
    begun.params === undefined ? emptyOf(null) : { value: begun.params, problem: undefined },
  );
  const [queue, setQueue] = useState(begun.queue ?? "");
  const [priority, setPriority] = useState("");
  const [delay, setDelay] = useState("");
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const known = useVerb("definitions.list", { kind: "job", limit: 200 });
  const names = (known.data?.items ?? []).map((each) => each.name);
  const schema = useSchema(name);

  async function make(): Promise<void> {
    setFailure(undefined);
    const input: VerbInput<"jobs.enqueue"> = {
      ...(begun.template === undefined ? { name } : { template: begun.template }),
      ...(params.value === undefined ? {} : { params: params.value }),
      ...(queue === "" ? {} : { queue }),
      ...(priority === "" ? {} : { priority: Number(priority) }),
      ...(delay === "" ? {} : { in: delay }),
      ...(key === "" ? {} : { key }),
    };
    try {
      const { id, created, warning } = await ask("jobs.enqueue", input);
      tell(created ? (warning ?? `${name} is enqueued`) : `There is such a job already`, {
        href: href(`/jobs/${segment(id)}`),
      });
      onClose();
      url.go(`/jobs/${segment(id)}`);
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title="Enqueue a job" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        {begun.template === undefined ? null : (
          <p>
            From the template <bdi>{begun.template}</bdi>; its params are laid under these.
          </p>
        )}
        <label class="field" hidden={begun.template !== undefined}>
          <span>Name</span>
          <input
            type="text"
            list="job-names"
            required={begun.template === undefined}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <datalist id="job-names">
            {names.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </label>
        <SchemaForm
          key={schema === null ? "" : name}
          label="Params"
          schema={schema}
          value={params}
          onChange={setParams}
        />
        <div class="columns narrow">
          <Text label="Queue" hint="the definition's" value={queue} onChange={setQueue} />
          <Text label="Priority" hint="0" value={priority} onChange={setPriority} />
          <Text label="Starts in" hint="now, or 30s, 5m" value={delay} onChange={setDelay} />
          <Text label="Key" hint="none" value={key} onChange={setKey} />
        </div>
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button
            type="submit"
            kind="main"
            whyNot={
              whyNot("operate") ??
              params.problem ??
              (name === "" && begun.template === undefined ? "Give a name first" : undefined)
            }
          >
            Enqueue
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

type TextProps = {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
};

function Text({ label, hint, value, onChange }: TextProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        placeholder={hint}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  );
}
