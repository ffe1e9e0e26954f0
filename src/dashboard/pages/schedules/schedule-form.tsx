// Makes or edits a schedule, and shows when it would fire before it is saved.
import { useEffect, useState } from "preact/hooks";
import { waitAnywhere } from "../../../core/anywhere.ts";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button, messageOf } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { Status } from "../../parts/status.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { zoneName } from "../../state/clock.ts";
import { tell } from "../../state/toast.ts";

type Schedule = VerbAnswer<"schedules.list">["items"][number];
type Kind = "cron" | "every" | "daily" | "at";
type Fire = { readonly at: number; readonly local: string; readonly there: string; readonly dst: string | null };
type Preview = {
  /** As it fires now; undefined of a new one. */
  readonly before: readonly Fire[] | undefined;
  readonly after: readonly Fire[];
  readonly problem: string | undefined;
};

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
  const [preview, setPreview] = useState<Preview>({ before: undefined, after: [], problem: undefined });
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const here = zoneName();

  useEffect(() => {
    const own = new AbortController();
    const asked = { [kind]: when, zone, count: 5, here, ...(schedule === undefined ? {} : { name: schedule.name }) };
    void waitAnywhere(250, own.signal)
      .then(() => ask("schedules.preview", asked, { signal: own.signal }))
      .then((found) =>
        setPreview(
          "fires" in found
            ? { before: undefined, after: found.fires, problem: undefined }
            : { ...found, problem: undefined },
        ),
      )
      .catch((error: unknown) => {
        if (!own.signal.aborted) setPreview({ before: undefined, after: [], problem: messageOf(error) });
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
            <FiresBeside before={preview.before} after={preview.after} here={here} zone={zone} />
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

type BesideProps = {
  readonly before: readonly Fire[] | undefined;
  readonly after: readonly Fire[];
  readonly here: string;
  readonly zone: string;
};

/** The next fires as they are and as they would be, with what an edit adds and takes away marked in words too. */
function FiresBeside({ before, after, here, zone }: BesideProps) {
  const old = new Set(before?.map(({ at }) => at));
  const kept = new Set(after.map(({ at }) => at));
  const isSame = before !== undefined && after.every(({ at }) => old.has(at));
  return (
    <div class="stack tight">
      <span class="soft">{`By the clock of ${zone}${here === zone ? "" : `, and of ${here}`}`}</span>
      <div class="columns narrow">
        {before === undefined || isSame ? null : (
          <FireList title="As it is" fires={before} mark={({ at }) => (kept.has(at) ? undefined : "gone")} />
        )}
        <FireList
          title={before === undefined ? "It would fire" : isSame ? "As it is: nothing differs" : "As it would be"}
          fires={after}
          mark={({ at }) => (before === undefined || old.has(at) ? undefined : "new")}
        />
      </div>
    </div>
  );
}

type FireListProps = {
  readonly title: string;
  readonly fires: readonly Fire[];
  readonly mark: (fire: Fire) => "new" | "gone" | undefined;
};

function FireList({ title, fires, mark }: FireListProps) {
  return (
    <section>
      <h3>{title}</h3>
      <ol>
        {fires.map((fire) => {
          const { at, local, there, dst } = fire;
          const marked = mark(fire);
          const Tag = marked === undefined ? "span" : marked === "new" ? "ins" : "del";
          return (
            <li key={at}>
              <Tag class="num">{local.replace("T", " ")}</Tag>
              {marked === undefined ? null : <span class="sr">{marked}</span>}
              {there === local ? null : <span class="faint"> · {there.replace("T", " ")}</span>}
              {dst === null ? null : <Status status="attention" note={dst === "gap" ? "left out" : "comes twice"} />}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
