// What may be done to a job, and why not.
import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { useSchema } from "../../state/use-schema.ts";
import { segment, useUrl } from "../../state/url.ts";
import { EnqueueDialog } from "./enqueue.tsx";

type Job = VerbAnswer<"jobs.show">;
type JobProps = { readonly job: Job; readonly again: () => void };

export function JobActions({ job, again }: JobProps) {
  const url = useUrl();
  const [isMaking, setMaking] = useState(false);
  const { id, status, retriedBy } = job;
  const may = whyNot("operate");
  const isOpen = status === "waiting" || status === "queued" || status === "running";
  const noRetry =
    may ??
    (isOpen
      ? "It has not ended"
      : retriedBy === null
        ? status === "completed"
          ? "It has completed; run it anew instead"
          : undefined
        : "It was tried again already");
  return (
    <>
      <Button
        icon="retry"
        hotkey="r"
        whyNot={noRetry}
        onPress={async () => {
          const made = await ask("jobs.retry", { id });
          tell(`${made.name} is tried again`);
          url.go(`/jobs/${segment(made.id)}`);
        }}
      >
        Retry
      </Button>
      <Button
        icon="close"
        whyNot={may ?? (isOpen ? undefined : "It has ended")}
        onPress={async () => {
          const done = await ask("jobs.cancel", { id });
          tell(done.status === "cancelled" ? "It is cancelled" : "It was told to stop");
          again();
        }}
      >
        Cancel
      </Button>
      <Button icon="copy" whyNot={may} onPress={() => setMaking(true)}>
        Run anew
      </Button>
      {isMaking ? (
        <EnqueueDialog
          begun={{ name: job.name, params: job.params, queue: job.queue }}
          onClose={() => setMaking(false)}
        />
      ) : null}
    </>
  );
}

/** The params of a job that has not started can be replaced. */
export function EditParams({ job: { id, name, status, params, retryOf }, again }: JobProps) {
  const [isOpen, setOpen] = useState(false);
  const [value, setValue] = useState<FormValue>({ value: params, problem: undefined });
  if (status !== "waiting" && status !== "queued") return null;
  return (
    <>
      <Button
        icon="edit"
        kind="quiet"
        whyNot={whyNot("operate") ?? (retryOf === null ? undefined : "A retry keeps the params of its chain")}
        onPress={() => {
          setValue({ value: params, problem: undefined });
          setOpen(true);
        }}
      >
        Edit
      </Button>
      {isOpen ? (
        <Confirm
          title={`Params of ${name.slice(0, 80)}`}
          act="Replace them"
          whyNot={value.problem}
          onClose={() => setOpen(false)}
          onAct={async () => {
            await ask("jobs.edit", { id, params: value.value });
            tell("Its params are replaced");
            again();
          }}
        >
          <ParamsForm name={name} value={value} onChange={setValue} />
        </Confirm>
      ) : null}
    </>
  );
}

type FormProps = {
  readonly name: string;
  readonly value: FormValue;
  readonly onChange: (value: FormValue) => void;
};

function ParamsForm({ name, value, onChange }: FormProps) {
  const schema = useSchema(name);
  return (
    <SchemaForm key={schema === null ? "" : name} label="Params" schema={schema} value={value} onChange={onChange} />
  );
}
