// npm run outputs: writes the JSON Schema of every verb's answer, made from the type that its `run` returns, so that nothing is
// said twice (test/verbs/outputs.test.ts compares). A number whose name ends with "at", and `since` and `until`, is a time.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  API,
  SignatureKind,
  SymbolFlags,
  TypeFlags,
  type Checker,
  type Symbol,
  type Type,
} from "typescript/unstable/sync";
import type { Schema } from "../src/verbs/field.ts";
import type { Outputs } from "../src/verbs/wire.ts";

export const outputsPath = join(import.meta.dirname, "../src/verbs/outputs.json");
const root = join(import.meta.dirname, "..");
const tableFile = join(root, "src/verbs/table.ts");

type Mutable = { [word: string]: unknown };

/** The schemas of all answers, as they are written. */
export function describeOutputs(): string {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [join(root, "tsconfig.json")] });
    const project = snapshot.getProject(join(root, "tsconfig.json"));
    const file = project?.program.getSourceFile(tableFile);
    const module = file === undefined ? undefined : project?.checker.getSymbolAtLocation(file);
    const table = module === undefined ? undefined : project?.checker.getMemberInModuleExports(module, "Table");
    if (project === undefined || table === undefined) throw new Error("src/verbs/table.ts has no type Table");
    return written(outputsOf(project.checker, project.checker.getDeclaredTypeOfSymbol(table)));
  } finally {
    api.close();
  }
}

/** One line for each schema, so that a change is seen where it is. */
function written({ outputs, defs }: Outputs): string {
  const lines = (schemas: Readonly<Record<string, Schema>>): string =>
    Object.entries(schemas)
      .map(([name, schema]) => `    ${JSON.stringify(name)}: ${JSON.stringify(schema)}`)
      .join(",\n");
  return `{\n  "outputs": {\n${lines(outputs)}\n  },\n  "defs": {\n${lines(defs)}\n  }\n}\n`;
}

function outputsOf(checker: Checker, table: Type): Outputs {
  const describer: Describer = { checker, defs: {}, named: new Map() };
  const outputs: Record<string, Schema> = {};
  for (const noun of checker.getPropertiesOfType(table)) {
    for (const each of checker.getPropertiesOfType(typeOf(checker, noun))) {
      const key = `${noun.name}.${each.name}`;
      outputs[key] = schemaOf(describer, answerOf(checker, typeOf(checker, each)), key);
    }
  }
  return { outputs, defs: Object.fromEntries(Object.entries(describer.defs).toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

/** What `run` returns, once it is there; of a stream, one item. */
function answerOf(checker: Checker, verb: Type): Type {
  const run = checker.getPropertyOfType(verb, "run");
  const [signature] = run === undefined ? [] : checker.getSignaturesOfType(typeOf(checker, run), SignatureKind.Call);
  const given = signature === undefined ? undefined : checker.getReturnTypeOfSignature(signature);
  if (given === undefined) throw new Error("a verb has no run");
  const isWrapped = ["Promise", "AsyncGenerator", "AsyncIterable", "AsyncIterableIterator"].includes(
    given.getSymbol()?.name ?? "",
  );
  if (!isWrapped || !given.isTypeReference()) return given;
  const [item] = checker.getTypeArguments(given);
  return item ?? given;
}

type Describer = {
  readonly checker: Checker;
  readonly defs: Record<string, Schema>;
  /** The symbol behind each name. */
  readonly named: Map<string, number>;
};

function schemaOf(describer: Describer, type: Type, at: string): Schema {
  const { checker } = describer;
  const { flags } = type;
  if (flags & (TypeFlags.Any | TypeFlags.Unknown)) return {};
  if (flags & TypeFlags.Null) return { type: "null" };
  if (type.isStringLiteralType()) return { const: type.value };
  if (type.isBooleanLiteralType()) return { const: type.value };
  if (flags & TypeFlags.StringLike) return { type: "string" };
  if (flags & TypeFlags.NumberLike)
    return /(?:^|\.|[a-z])(?:at|At)$|\.(?:since|until)$/.test(at)
      ? { type: "number", "x-time": "epoch-ms" }
      : { type: "number" };
  if (flags & TypeFlags.BooleanLike && !type.isUnionType()) return { type: "boolean" };
  if (type.isUnionType()) return unionOf(describer, type.getTypes() ?? [], at);
  if (checker.isArrayType(type) && type.isTypeReference()) {
    const [item] = checker.getTypeArguments(type);
    return { type: "array", items: item === undefined ? {} : schemaOf(describer, item, `${at}[]`) };
  }
  const alias = type.getAliasTypeArguments().length === 0 ? type.getAliasSymbol() : undefined;
  if (alias === undefined) return objectOf(describer, type, at);
  const { name, id } = alias;
  const known = describer.named.get(name);
  if (known !== undefined && known !== id) throw new Error(`two types are named ${name}: rename one`);
  if (known === undefined) {
    describer.named.set(name, id);
    describer.defs[name] = objectOf(describer, type, name);
  }
  return { $ref: `#/components/schemas/${name}` };
}

function unionOf(describer: Describer, types: readonly Type[], at: string): Schema {
  const parts = types.filter((each) => !(each.flags & TypeFlags.Undefined));
  const words = parts.flatMap((each) => (each.isStringLiteralType() ? [each.value] : []));
  const truths: readonly Type[] = parts.filter((each) => each.isBooleanLiteralType());
  const rest = parts.filter((each) => !each.isStringLiteralType() && !(truths.length === 2 && truths.includes(each)));
  const all: Schema[] = [
    ...(words.length > 0 ? [{ type: "string", enum: words.toSorted() }] : []),
    ...(truths.length === 2 ? [{ type: "boolean" }] : []),
    // The compiler has an order of its own, which is not the same in every program.
    ...rest
      .map((each) => schemaOf(describer, each, at))
      .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  ];
  const [only] = all;
  return all.length === 1 && only !== undefined ? only : { anyOf: all };
}

function objectOf(describer: Describer, type: Type, at: string): Schema {
  const { checker } = describer;
  const properties: Mutable = {};
  const required: string[] = [];
  for (const each of checker.getPropertiesOfType(type)) {
    if (/^(?:~|__@)/.test(each.name)) continue;
    const of = typeOf(checker, each);
    if (checker.getSignaturesOfType(of, SignatureKind.Call).length > 0)
      throw new Error(`${at}.${each.name} is a function`);
    const [about = ""] = each.getDocumentationComment(checker).split("\n\n");
    properties[each.name] = {
      ...schemaOf(describer, of, `${at}.${each.name}`),
      ...(about === "" ? {} : { description: about.replaceAll(/\s+/g, " ") }),
    };
    if (!(each.flags & SymbolFlags.Optional)) required.push(each.name);
  }
  const [index] = checker.getIndexInfosOfType(type);
  const others = index === undefined ? {} : { additionalProperties: schemaOf(describer, index.valueType, `${at}{}`) };
  return { type: "object", properties, required, ...others };
}

function typeOf(checker: Checker, symbol: Symbol): Type {
  const type = checker.getTypeOfSymbol(symbol);
  if (type === undefined) throw new Error("a symbol has no type");
  return type;
}

if (import.meta.main) {
  writeFileSync(outputsPath, describeOutputs());
  console.log(`wrote ${outputsPath}`);
}
