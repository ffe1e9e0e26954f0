import { foreignWrites, hiddenState, literalSpreads, strayMoves, tableOwners } from "./laws.ts";
import { isRoom, roomOf, wrongImport } from "./rooms.ts";
import { blankOut, importsOf, lineAt, type Import, type SourceFile } from "./scan.ts";

/** The rules of the house that no other tool checks. Each complaint says what to do instead. */
export interface Complaint {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** A file with what several rules need: `code` is its text without comments and strings, offsets unchanged. */
interface Scanned extends SourceFile {
  readonly code: string;
  readonly imports: readonly Import[];
}

type Found = Omit<Complaint, "path">;
type Rule = (file: Scanned) => Found[];

const linesMaxSrc = 350;
const linesMaxElsewhere = 600;

export function tidy(files: readonly SourceFile[]): Complaint[] {
  const owners = tableOwners(files);
  return files.flatMap((file) => {
    const isSource = /\.(?:ts|tsx|mts|js|mjs)$/.test(file.path);
    const code = isSource ? blankOut(file.text) : "";
    const scanned = { ...file, code, imports: isSource ? importsOf(file.text, code) : [] };
    const applied = isSource ? [...sourceRules, ...textRules] : textRules;
    const lawless = isSource
      ? [...foreignWrites(file, owners), ...strayMoves(file), ...hiddenState(scanned), ...literalSpreads(scanned)]
      : [];
    return [
      ...applied.flatMap((rule) => rule(scanned)),
      ...lawless.map(({ offset, message }) => ({ line: lineAt(file.text, offset), message })),
    ].map((found) => ({ path: file.path, ...found }));
  });
}

const roomIsKnown: Rule = ({ path }) => {
  const room = roomOf(path);
  if (room === undefined || isRoom(room)) return [];
  return [
    atTop(`src/${room} is not a room; put the file into the room it belongs to, or add the room to test/tidy/rooms.ts`),
  ];
};

const importsGoDown: Rule = ({ path, imports }) =>
  imports.flatMap(({ specifier, line }) => {
    const message = wrongImport(path, specifier);
    return message === undefined ? [] : [{ line, message }];
  });

const fileIsShort: Rule = ({ path, text }) => {
  const limit = path.startsWith("src/") ? linesMaxSrc : linesMaxElsewhere;
  const lines = text.replace(/\n$/, "").split("\n").length;
  return lines < limit
    ? []
    : [atTop(`has ${lines} lines and must stay below ${limit}; split it by its verbs, one file for each`)];
};

const bannedWords = /^(?:.*-)?(?:utils?|helpers?|common|types|interfaces?|managers?|services?|misc)$/;

const nameIsPlain: Rule = ({ path }) => {
  if (!/^(?:src|test|examples|bench|schema)\//.test(path)) return [];
  return path.split("/").flatMap((part) => {
    const stem = part.replace(/(?:\.test|\.d)?\.[a-z]+$/, "");
    // Python cannot import a module whose name has a hyphen.
    const words = part.endsWith(".py") ? stem.replaceAll("_", "-") : stem;
    if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(words)) return [atTop(`"${part}" is not in kebab-case; rename it`)];
    if (!bannedWords.test(stem)) return [];
    return [atTop(`"${part}" says nothing; name it by the one noun or verb it holds, and keep types beside their use`)];
  });
};

const stray: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [
    /\bDate\.now\b|\bnew\s+Date\s*\(\s*\)|\bnew\s+Date\b(?!\s*\()|\bTemporal\.Now\b/g,
    "use tx.now or the clock of src/core",
  ],
  [/\bperformance\.now\b|\bprocess\.hrtime\b/g, "measure with the monotonic clock of src/core"],
  [/(?:(?<![\w$.])|\bglobalThis\.)set(?:Timeout|Interval|Immediate)\s*\(/g, "wait with the clock of src/core"],
  [
    /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\brandomInt\b|\bgetRandomValues\b/g,
    "take ids and chance from src/core",
  ],
];

const timeAndChanceComeFromCore: Rule = ({ path, code, imports }) => {
  if (!path.startsWith("src/") || path.startsWith("src/core/")) return [];
  const timers = imports
    .filter(({ specifier }) => /^(?:node:)?timers(?:\/|$)/.test(specifier))
    .map(({ specifier, line }) => ({ line, message: `imports ${specifier}; wait with the clock of src/core` }));
  return [...timers, ...stray.flatMap(([pattern, instead]) => search(code, pattern, (hit) => `${hit}: ${instead}`))];
};

const noBarrel: Rule = ({ path, code }) => {
  if (!path.startsWith("src/") || path === "src/index.ts") return [];
  const exports = /\bexport\s+(?:type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})(?:\s*from\s*["'][^"']*["'])?\s*;?/g;
  const imports = /\bimport\s+(?:[^"';]*?\bfrom\s*)?["'][^"']*["']\s*;?/g;
  const withoutExports = code.replace(exports, "");
  if (withoutExports === code || withoutExports.replace(imports, "").trim() !== "") return [];
  return [atTop("only passes names on; import from the file that defines them, public names go into src/index.ts")];
};

const noShortcut: Rule = ({ path, text, code }) =>
  !path.startsWith("src/")
    ? []
    : [
        ...search(
          code,
          /\bas\s+any\b|:\s*any\b(?!\s*[(.`])|<any\b/g,
          (hit) => `"${hit}": say the type, or unknown and narrow it`,
        ),
        ...search(
          text,
          /@ts-(?:ignore|nocheck)\b/g,
          (hit) => `${hit}: mend the type; @ts-expect-error with a reason if it is not ours`,
        ),
        ...search(text, /\b(?:TODO|FIXME)\b/g, (hit) => `${hit}: do it now, or open an issue and leave the code whole`),
      ];

const everyTestRuns: Rule = ({ path, code }) =>
  !path.startsWith("test/")
    ? []
    : search(
        code,
        /\b(?:test|it|describe|suite|t|context)\.(?:only|skip|todo)\b|[{,]\s*(?:only|skip|todo)\s*:\s*(?=true\b|["'`])/g,
        (hit) => `"${hit.replace(/^[{,]\s*/, "")}" keeps tests from running; mend the test or remove it`,
      );

// All tests of a run share one server, so one that ends or counts what others do makes them fail.
const testsStayInTheirDatabase: Rule = ({ path, text }) =>
  !path.startsWith("test/")
    ? []
    : search(
        text,
        /\bfrom (?:pg_stat_activity|pg_locks)\b(?![^;]{0,200}(?:current_database|= pg_backend_pid)\(\))/g,
        (hit) => `"${hit}" sees the databases of other tests; add "where datname = current_database()"`,
      );

const databasesStayInStorage: Rule = ({ path, imports }) =>
  /^(?:src\/storage|test|bench)\//.test(path)
    ? []
    : imports
        .filter(({ specifier }) => /^(?:(?:node:)?sqlite$|pg(?:$|[/-]))/.test(specifier))
        .map(({ specifier, line }) => ({
          line,
          message: `imports ${specifier}; only src/storage talks to a driver: call its functions instead`,
        }));

const noMachinePath: Rule = ({ text }) =>
  search(
    text,
    /(?<![\w.\-/])\/(?:work|root|home|Users)\//g,
    (hit) => `"${hit}" exists on one machine; use a relative path`,
  );

const noRegistryHost: Rule = ({ path, text }) =>
  path !== "package-lock.json"
    ? []
    : search(
        text,
        /"resolved": "http/g,
        () => "names a registry host; install with omit-lockfile-registry-resolved",
      ).slice(0, 1);

const sourceRules: readonly Rule[] = [
  roomIsKnown,
  importsGoDown,
  fileIsShort,
  timeAndChanceComeFromCore,
  noBarrel,
  noShortcut,
  everyTestRuns,
  testsStayInTheirDatabase,
  databasesStayInStorage,
];
const textRules: readonly Rule[] = [nameIsPlain, noMachinePath, noRegistryHost];

function search(text: string, pattern: RegExp, say: (hit: string) => string): Found[] {
  return [...text.matchAll(pattern)].map((match) => ({ line: lineAt(text, match.index), message: say(match[0]) }));
}

function atTop(message: string): Found {
  return { line: 1, message };
}
