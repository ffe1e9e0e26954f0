// Makes or edits a schedule, and shows when it would fire before it is saved.
import { useEffect, useState } from "preact/hooks";
import { waitAnywhere } from "../../../core/anywhere.ts";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";

type Schedule = VerbAnswer<"schedules.list">["items"][number];
type Kind = "cron" | "every" | "daily" | "at";
type Preview = { readonly lines: readonly string[]; readonly problem: string | undefined };

type Props = { readonly schedule?: Schedule; readonly onClose: () => void; readonly onDone: () => void };

export function ScheduleForm({ schedule, onClose, onDone }: Props) {
  const [name, setName] = useState(schedule?.name ?? "");
  const [kind, setKind] = useState<Kind>(
    schedule === undefined ? "cron" : schedule.kind === "once" ? "at" : schedule.kind,
  );
  const [when, setWhen] = useState(schedule?.expression ?? "0 7 * * *");
  const [zone, setZone] = useState(schedule?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [target, setTarget] = useState<"job" | "template" | "event">(schedule?.target.kind ?? "job");
  const [targetName, setTargetName] = useState(schedule?.target.name ?? "");
  const [params, setParams] = useState<FormValue>({ value: schedule?.params ?? {}, problem: undefined });
  const [preview, setPreview] = useState<Preview>({ lines: [], problem: undefined });
  const [failure, setFailure] = useState<string | undefined>(undefined);

  useEffect(() => {
    const own = new AbortController();
    void waitAnywhere(250, own.signal)
      .then(() =>
        ask(
          "schedules.preview",
          { [kind]: when, zone, count: 5 },
          {
            signal: own.signal,
          },
        ),
      )
      .then((found) => {
        const fires = "fires" in found ? found.fires : found.after;
        setPreview({
          lines: fires.map(({ there, dst }) => `${there.replace("T", " ")}${dst === null ? "" : ` (${dst})`}`),
          problem: undefined,
        });
      })
      .catch((error: unknown) => {
        if (!own.signal.aborted) setPreview({ lines: [], problem: messageOf(error) });
      });
    return () => own.abort();
  }, [kind, when, zone]);

  async function save(): Promise<void> {
    setFailure(undefined);
    const what = target === "event" ? { payload: params.value } : { params: params.value };
    const input = { name, [kind]: when, zone, [target]: targetName, ...what };
    try {
      if (schedule === undefined) await ask("schedules.create", input as unknown as VerbInput<"schedules.create">);
      else await ask("schedules.edit", input as unknown as VerbInput<"schedules.edit">);
      tell(`${name} is saved`);
      onDone();
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title={schedule === undefined ? "New schedule" : `Edit ${schedule.name}`} onClose={onClose} wide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <div class="columns narrow">
          <label class="field">
            <span>Name</span>
            <input
              type="text"
              required
              value={name}
              readOnly={schedule !== undefined}
              onInput={({ currentTarget }) => setName(currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>Kind</span>
            <select value={kind} onChange={({ currentTarget }) => setKind(currentTarget.value as Kind)}>
              <option value="cron">cron</option>
              <option value="every">every</option>
              <option value="daily">daily</option>
              <option value="at">once</option>
            </select>
          </label>
          <label class="field">
            <span>
              {kind === "cron"
                ? "Expression"
                : kind === "every"
                  ? "Interval"
                  : kind === "daily"
                    ? "Time of day"
                    : "Moment"}
            </span>
            <input
              type="text"
              class="mono"
              required
              placeholder={
                kind === "cron"
                  ? "0 7 * * *"
                  : kind === "every"
                    ? "90s"
                    : kind === "daily"
                      ? "07:00"
                      : "2027-01-01T07:00:00Z"
              }
              aria-invalid={preview.problem !== undefined}
              value={when}
              onInput={({ currentTarget }) => setWhen(currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>Zone</span>
            <input type="text" value={zone} onInput={({ currentTarget }) => setZone(currentTarget.value)} />
          </label>
        </div>
        <div class="preview" aria-live="polite">
          {preview.problem === undefined ? (
            <ol>
              {preview.lines.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ol>
          ) : (
            <p class="field-problem">{preview.problem}</p>
          )}
        </div>
        <div class="columns narrow">
          <label class="field">
            <span>Makes</span>
            <select value={target} onChange={({ currentTarget }) => setTarget(currentTarget.value as typeof target)}>
              <option value="job">a job by its name</option>
              <option value="template">a job from a template</option>
              <option value="event">an event</option>
            </select>
          </label>
          <label class="field">
            <span>{target === "event" ? "Topic" : "Name"}</span>
            <input
              type="text"
              required
              value={targetName}
              onInput={({ currentTarget }) => setTargetName(currentTarget.value)}
            />
          </label>
        </div>
        <SchemaForm
          label={target === "event" ? "Payload" : "Params"}
          schema={null}
          value={params}
          onChange={setParams}
        />
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" whyNot={whyNot("operate") ?? preview.problem ?? params.problem}>
            Save
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
