// Writes records by hand: a new one, changes of one that is there, a link between two, an end.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { VerbInput } from "../../../client/verbs.ts";
import { messageOf, Button } from "../../parts/button.tsx";
import { Confirm, Dialog } from "../../parts/dialog.tsx";
import { Diff } from "../../parts/diff.tsx";
import { emptyOf, SchemaForm, type FormValue } from "../../parts/schema-form.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { writeExactly } from "../../state/exact.ts";
import { tell } from "../../state/toast.ts";
import { segment, useUrl } from "../../state/url.ts";
import { keyPath, keyText, partsOf, type Key } from "./key.ts";
import { documentSchema, type RecordKind } from "./schema.ts";

type NewProps = { readonly type: RecordKind; readonly onClose: () => void; readonly onDone: () => void };

/** A new entity, or a new relation between two that are there. */
export function NewRecord({ type, onClose, onDone }: NewProps) {
  const url = useUrl();
  const schema = documentSchema(type);
  const isRelation = type.kind === "relation";
  const [document, setDocument] = useState<FormValue>(emptyOf(schema));
  const [ends, setEnds] = useState({ from: "", to: "" });

  async function write(reason: string): Promise<void> {
    const why = reason === "" ? {} : { reason };
    const input = isRelation
      ? { type: type.name, ...ends, document: document.value, ...why }
      : { type: type.name, document: document.value, ...why };
    const { key } = isRelation
      ? await ask("records.link", input as unknown as VerbInput<"records.link">)
      : await ask("records.put", input as unknown as VerbInput<"records.put">);
    tell(`${type.name} ${keyText(key)} is written`);
    onDone();
    url.go(`/records/${segment(type.name)}/${keyPath(key)}`);
  }

  return (
    <Writing
      title={isRelation ? `Link by ${type.name}` : `New ${type.name}`}
      act={isRelation ? "Link" : "Write"}
      problem={document.problem}
      onClose={onClose}
      onWrite={write}
    >
      {isRelation ? (
        <div class="columns narrow">
          {(["from", "to"] as const).map((end) => (
            <label key={end} class="field">
              <span>{`${end === "from" ? "From" : "To"} the ${type[end] ?? "record"}`}</span>
              <input
                type="text"
                required
                placeholder="its key"
                value={ends[end]}
                onInput={({ currentTarget }) => setEnds({ ...ends, [end]: currentTarget.value })}
              />
            </label>
          ))}
        </div>
      ) : null}
      <SchemaForm label="Document" schema={schema} value={document} onChange={setDocument} />
    </Writing>
  );
}

type EditProps = {
  readonly type: RecordKind;
  readonly recordKey: Key;
  readonly revision: number;
  readonly value: unknown;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** Says what differs before it is saved, and refuses to overwrite what somebody else wrote meanwhile. */
export function EditRecord({ type, recordKey, revision, value, onClose, onDone }: EditProps) {
  const [document, setDocument] = useState<FormValue>({ value, problem: undefined });
  const { fields, removed } = changesOf(value, document.value);
  const isSame = Object.keys(fields).length === 0 && removed.length === 0;
  return (
    <Writing
      title={`Edit ${keyText(recordKey)}`}
      act="Save"
      problem={document.problem ?? (isSame ? "Nothing differs yet" : undefined)}
      onClose={onClose}
      onWrite={async (reason) => {
        await ask("records.patch", {
          type: type.name,
          key: partsOf(recordKey),
          ifRevision: revision,
          ...(Object.keys(fields).length === 0 ? {} : { fields }),
          ...(removed.length === 0 ? {} : { removed }),
          ...(reason === "" ? {} : { reason }),
        });
        tell(`${keyText(recordKey)} is saved`);
        onDone();
      }}
    >
      <SchemaForm label="Document" schema={documentSchema(type)} value={document} onChange={setDocument} />
      <section class="preview" aria-label="What would change" aria-live="polite">
        <h3>What would change</h3>
        <Diff before={value} after={document.value} />
      </section>
    </Writing>
  );
}

type WritingProps = {
  readonly title: string;
  readonly act: string;
  readonly problem: string | undefined;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  readonly onWrite: (reason: string) => Promise<void>;
};

function Writing({ title, act, problem, children, onClose, onWrite }: WritingProps) {
  const [reason, setReason] = useState("");
  const [failure, setFailure] = useState<string | undefined>(undefined);

  async function write(): Promise<void> {
    setFailure(undefined);
    try {
      await onWrite(reason);
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (problem === undefined) void write();
        }}
      >
        {children}
        <Reason value={reason} onInput={setReason} />
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <footer class="row end">
          <Button onPress={onClose}>Leave it</Button>
          <Button type="submit" kind="main" whyNot={whyNot("operate") ?? problem}>
            {act}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

type DeleteProps = { readonly type: RecordKind; readonly recordKey: Key; readonly onDone: () => void };

export function DeleteRecord({ type, recordKey, onDone }: DeleteProps) {
  const [isAsking, setAsking] = useState(false);
  const [reason, setReason] = useState("");
  const [unlink, setUnlink] = useState(false);
  const isRelation = type.kind === "relation";
  const act = isRelation ? "Unlink" : "Delete";
  const input = { type: type.name, key: partsOf(recordKey), ...(reason === "" ? {} : { reason }) };
  return (
    <>
      <Button icon="trash" kind="danger" whyNot={whyNot("operate")} onPress={() => setAsking(true)}>
        {act}
      </Button>
      {isAsking ? (
        <Confirm
          title={`${act} ${type.name} ${keyText(recordKey)}`}
          act={act}
          kind="danger"
          onClose={() => setAsking(false)}
          onAct={async () => {
            if (isRelation) await ask("records.unlink", input as unknown as VerbInput<"records.unlink">);
            else {
              const whole = { ...input, ...(unlink ? { unlink } : {}) };
              await ask("records.delete", whole as unknown as VerbInput<"records.delete">);
            }
            tell(`${keyText(recordKey)} is gone; what was known of it stays known`);
            onDone();
          }}
        >
          <p>Its versions stay, and any of them can be restored.</p>
          {isRelation ? null : (
            <div class="field check">
              <input
                id="unlink-too"
                type="checkbox"
                checked={unlink}
                onChange={({ currentTarget }) => setUnlink(currentTarget.checked)}
              />
              <label htmlFor="unlink-too">Unlink what connects it with others, too</label>
            </div>
          )}
          <Reason value={reason} onInput={setReason} />
        </Confirm>
      ) : null}
    </>
  );
}

export function Reason({ value, onInput }: { readonly value: string; readonly onInput: (text: string) => void }) {
  return (
    <label class="field">
      <span>
        Why <span class="faint">stands in the commit</span>
      </span>
      <input type="text" value={value} onInput={({ currentTarget }) => onInput(currentTarget.value)} />
    </label>
  );
}

function changesOf(before: unknown, after: unknown): { fields: Record<string, unknown>; removed: string[] } {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const changed = Object.entries(now).filter(([name, value]) => writeExactly(old[name]) !== writeExactly(value));
  return { fields: Object.fromEntries(changed), removed: Object.keys(old).filter((name) => !(name in now)) };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
