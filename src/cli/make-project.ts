// Writes the files of a project: those of its template, and those that every project has.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { conflict, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { forShell } from "./more-line.ts";
import type { Answer } from "./with-book.ts";

const packageRoot = dirname(fileURLToPath(new URL("../../package.json", import.meta.url)));

/** What starts each project. */
const starts = {
  minimal: "node src/main.ts",
  server: "daybook serve --book book.db",
  automations: "daybook run apps --watch --book home.db",
} as const;

export async function makeProject(given: string, template: keyof typeof starts): Promise<Answer> {
  const folder = resolve(given);
  if (existsSync(folder) && !statSync(folder).isDirectory()) throw invalid(`${quote(given)} is a file: name a folder`);
  const files = new Map([...ownFiles(folder, template), ...(await filesOf(template, nameFor(folder)))]);
  const taken = [...files.keys()].filter((path) => existsSync(join(folder, path)));
  if (taken.length > 0) {
    const what = `${quote(given)} has ${taken.join(", ")} already, so nothing was written`;
    throw conflict(`${what}: name an empty folder, or move what is there`, { folder, files: taken });
  }
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    // Who was quicker keeps their file.
    await writeFile(join(folder, path), text, { flag: "wx" });
  }
  const place = relative(process.cwd(), folder);
  const next = [...(place === "" ? [] : [`cd ${forShell(place)}`]), "npm install", "npm start"];
  return {
    json: { folder, template, files: [...files.keys()], next },
    text: () =>
      [
        `${folder} is made:`,
        ...[...files.keys()].map((path) => `  ${path}`),
        "",
        "Next:",
        ...next.map((line) => `  ${line}`),
      ].join("\n"),
  };
}

/** The files of the template by their paths, with the name of the project in place. */
async function filesOf(template: string, name: string): Promise<[path: string, text: string][]> {
  const root = join(packageRoot, "templates", template);
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = found.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  return Promise.all(
    paths.toSorted().map(async (path): Promise<[string, string]> => {
      const text = await readFile(path, "utf8");
      return [
        relative(root, path).split(sep).join("/"),
        path.endsWith(".md") ? text.replace("{name}", () => name) : text,
      ];
    }),
  );
}

type Manifest = { readonly version: string; readonly devDependencies: Readonly<Record<string, string>> };

function ownFiles(folder: string, template: keyof typeof starts): [path: string, text: string][] {
  const { version, devDependencies } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as Manifest;
  const since = (name: string): Record<string, string> => ({ [name]: `^${devDependencies[name] ?? "*"}` });
  const manifest = {
    name: nameFor(folder),
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: { start: starts[template], check: "tsc --noEmit" },
    dependencies: { daybook: `^${version}`, ...(template === "server" ? since("zod") : {}) },
    devDependencies: { ...since("@types/node"), ...since("typescript") },
    engines: { node: ">=24.15" },
  };
  return [
    ["package.json", pretty(manifest)],
    ["tsconfig.json", pretty(compiling)],
    [".gitignore", "node_modules/\n*.db\n*.db-*\n.env\n"],
  ];
}

/** Node strips the types, so only syntax that can be erased is allowed, and imports name the files as they are. */
const compiling = {
  compilerOptions: {
    target: "esnext",
    module: "nodenext",
    lib: ["esnext"],
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
  },
  include: ["**/*.ts"],
};

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The folder's, as npm allows it. */
function nameFor(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replace(/^[._-]+/, "")
    .slice(0, 200);
  return name === "" || name === "daybook" ? "my-daybook" : name;
}
