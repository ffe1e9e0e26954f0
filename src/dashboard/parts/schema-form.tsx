// A form made from a JSON Schema, or JSON by hand where there is none or where it says more than a form can.
import { useId, useState } from "preact/hooks";
import { writeExactly } from "../state/exact.ts";
import { Tabs } from "./page.tsx";

export type Schema = {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
};

export type FormValue = { readonly value: unknown; readonly problem: string | undefined };

type FormProps = {
  readonly label: string;
  readonly schema: Schema | null | undefined;
  readonly value: FormValue;
  readonly onChange: (value: FormValue) => void;
};

export function emptyOf(schema: Schema | null | undefined): FormValue {
  const made = schema === null || schema === undefined ? {} : defaultOf(schema);
  return { value: made ?? {}, problem: undefined };
}

export function SchemaForm({ label, schema, value, onChange }: FormProps) {
  const isObject = typeof value.value === "object" && value.value !== null && !Array.isArray(value.value);
  const canForm = schema?.properties !== undefined && Object.keys(schema.properties).length > 0 && isObject;
  const [mode, setMode] = useState(canForm ? "form" : "json");
  const [text, setText] = useState(() => writeExactly(value.value));

  function type(next: string): void {
    setText(next);
    try {
      onChange({ value: next.trim() === "" ? undefined : JSON.parse(next), problem: undefined });
    } catch (error) {
      onChange({ value: value.value, problem: `This is no JSON: ${error instanceof Error ? error.message : ""}` });
    }
  }

  return (
    <fieldset class="stack tight form">
      <legend class="row">
        <span class="grow">{label}</span>
        {canForm || mode === "form" ? (
          <Tabs
            label={`How ${label.toLowerCase()} are written`}
            current={mode}
            tabs={[
              { id: "form", text: "Form" },
              { id: "json", text: "JSON" },
            ]}
            onChoose={(next) => {
              if (next === "json") setText(writeExactly(value.value));
              if (next === "json" || canForm) setMode(next);
            }}
          />
        ) : null}
      </legend>
      {mode === "form" && schema?.properties !== undefined && isObject ? (
        <Fields
          schema={schema}
          value={value.value as Fields}
          onChange={(next) => onChange({ value: next, problem: undefined })}
        />
      ) : (
        <textarea
          class="mono"
          rows={Math.min(14, Math.max(4, text.split("\n").length + 1))}
          aria-label={`${label} as JSON`}
          aria-invalid={value.problem !== undefined}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => type(currentTarget.value)}
        />
      )}
      {value.problem === undefined ? null : (
        <p class="field-problem" role="alert">
          {value.problem}
        </p>
      )}
    </fieldset>
  );
}

type Fields = Readonly<Record<string, unknown>>;
type FieldsProps = { readonly schema: Schema; readonly value: Fields; readonly onChange: (value: Fields) => void };

function Fields({ schema, value, onChange }: FieldsProps) {
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, of]) => (
        <Field
          key={name}
          name={name}
          schema={of}
          isNeeded={schema.required?.includes(name) === true}
          value={value[name]}
          onChange={(next) => {
            const { [name]: _, ...others } = value;
            onChange(next === undefined ? others : { ...value, [name]: next });
          }}
        />
      ))}
    </>
  );
}

type FieldProps = {
  readonly name: string;
  readonly schema: Schema;
  readonly isNeeded: boolean;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
};

function Field({ name, schema, isNeeded, value, onChange }: FieldProps) {
  const id = useId();
  const kind = kindOf(schema);
  const label = (
    <label htmlFor={id}>
      {schema.title ?? name}
      {isNeeded ? null : <span class="faint"> optional</span>}
    </label>
  );
  const hint = schema.description === undefined ? null : <small class="soft">{schema.description}</small>;
  if (kind === "object") {
    const inner = typeof value === "object" && value !== null ? (value as Fields) : {};
    return (
      <fieldset class="stack tight inner">
        <legend>{schema.title ?? name}</legend>
        <Fields schema={schema} value={inner} onChange={onChange} />
      </fieldset>
    );
  }
  if (kind === "boolean") {
    return (
      <div class="field check">
        <input
          id={id}
          type="checkbox"
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        {label}
        {hint}
      </div>
    );
  }
  return (
    <div class="field">
      {label}
      {kind === "enum" ? (
        <select
          id={id}
          value={JSON.stringify(value) ?? ""}
          onChange={(event) => onChange(parse(event.currentTarget.value))}
        >
          <option value="">–</option>
          {(schema.enum ?? []).map((each) => (
            <option key={String(each)} value={JSON.stringify(each)}>
              {String(each)}
            </option>
          ))}
        </select>
      ) : kind === "json" ? (
        <JsonField id={id} value={value} onChange={onChange} />
      ) : (
        <input
          id={id}
          {...(kind === "number"
            ? { type: "number", step: "any", min: schema.minimum, max: schema.maximum }
            : { type: "text" })}
          required={isNeeded}
          value={typeof value === "string" || typeof value === "number" ? value : ""}
          onInput={({ currentTarget }) => onChange(readInput(currentTarget.value, kind))}
        />
      )}
      {hint}
    </div>
  );
}

function JsonField({ id, value, onChange }: { id: string; value: unknown; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? "" : writeExactly(value));
  const parsed = text.trim() === "" ? undefined : parse(text);
  return (
    <textarea
      id={id}
      class="mono"
      rows={2}
      spellcheck={false}
      aria-invalid={text.trim() !== "" && parsed === undefined}
      value={text}
      onInput={({ currentTarget }) => {
        setText(currentTarget.value);
        onChange(parse(currentTarget.value));
      }}
    />
  );
}

function readInput(text: string, kind: string): unknown {
  if (kind !== "number") return text;
  return text === "" ? undefined : Number(text);
}

function parse(text: string): unknown {
  try {
    return text.trim() === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function kindOf(schema: Schema): "object" | "boolean" | "number" | "enum" | "text" | "json" {
  if (schema.enum !== undefined) return "enum";
  const type = Array.isArray(schema.type)
    ? (schema.type as readonly string[]).find((each) => each !== "null")
    : schema.type;
  if (type === "object" && schema.properties !== undefined) return "object";
  if (type === "boolean") return "boolean";
  if (type === "number" || type === "integer") return "number";
  return type === "string" ? "text" : "json";
}

function defaultOf(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.properties === undefined) return undefined;
  const made = Object.entries(schema.properties).map(([name, of]) => [name, defaultOf(of)] as const);
  return Object.fromEntries(made.filter(([, value]) => value !== undefined));
}
