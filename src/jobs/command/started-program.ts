// Which program argv starts, behind programs that start another one (env, nice, sudo …), and where a value would become code:
// shells and remote shells put their arguments together and read them as a script, and interpreters run a text that they
// are given. The lists cannot be complete: whoever writes argv answers for what its program makes of it.
import { invalid } from "../../core/error.ts";

/** One argument as the definition has it; `values` says whether it has places for params. */
export type Argument = { readonly text: string; readonly values: boolean };

type Wrapper = {
  /** Options whose value is the next argument. */
  readonly takes?: readonly string[];
  /** Arguments of its own before the program, such as the time of `timeout`. */
  readonly own?: number;
  /** It sets variables that stand before the program. */
  readonly pairs?: boolean;
  /** Options that make a script of what follows. */
  readonly script?: RegExp;
};

const wrappers: Readonly<Record<string, Wrapper>> = {
  busybox: {},
  chroot: { own: 1 },
  chrt: { takes: ["-T", "-P", "-D"], own: 1 },
  doas: { takes: ["-u", "-C"], script: /^-[Lns]*s/ },
  env: { takes: ["-u", "--unset", "-C", "--chdir", "-a", "--argv0"], pairs: true, script: /^-[0iv]*S|^--split-s/ },
  flock: { takes: ["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"], own: 1, script: /^-c|^--command/ },
  ionice: { takes: ["-c", "--class", "-n", "--classdata", "-p", "--pid", "-P", "--pgid", "-u", "--uid"] },
  nice: { takes: ["-n", "--adjustment"] },
  nohup: {},
  setpriv: { takes: ["--reuid", "--regid", "--groups", "--inh-caps", "--ambient-caps", "--bounding-set"] },
  setsid: {},
  stdbuf: { takes: ["-i", "--input", "-o", "--output", "-e", "--error"] },
  strace: { takes: ["-o", "-e", "-p", "-s", "-u", "-E", "-a", "-O", "-S", "-P", "-b", "-I", "-U"] },
  sudo: {
    takes: [
      ...["-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "--close-from", "-D", "--chdir"],
      ...["-R", "--chroot", "-r", "--role", "-t", "--type", "-T", "--command-timeout", "-U", "--other-user"],
    ],
    ...{ pairs: true, script: /^-[AbEHKknPS]*[is]|^--shell|^--login/ },
  },
  taskset: { own: 1 },
  time: { takes: ["-f", "--format", "-o", "--output"] },
  timeout: { takes: ["-k", "--kill-after", "-s", "--signal"], own: 1 },
  toybox: {},
  unshare: { takes: ["-S", "--setuid", "-G", "--setgid", "-R", "--root", "-w", "--wd"] },
  xargs: {
    takes: [
      ...["-a", "--arg-file", "-d", "--delimiter", "-E", "-I", "-L", "--max-lines", "-n", "--max-args"],
      ...["-P", "--max-procs", "-s", "--max-chars"],
    ],
  },
};

const shells =
  /^(?:(?:ba|da|z|k|mk|a|fi|tc|c|pw|r|s|nu|x?on|rba|elvi)?sh|powershell|cmd|mosh|autossh|rexec|su|runuser|script|parallel|watch|tmux|screen)$/;
const oftenOwn = /^(?:script|parallel|watch|tmux|screen)$/;
const interpreters = /^(?:python|perl|ruby|node(?:js)?|php|deno|bun|osascript|lua(?:jit)?|tclsh|rscript|expect)$/;
const scriptOption = /^-[a-z]*[ce]x?$|^--(?:eval|print)(?:=|$)/i;
/** The script is in the same argument. */
const gluedScript = /^-[a-z]*[ce]\{/i;
// Behind a script file these would be its own options.
const scriptOptionFirst = /^-[pr]$|^eval$/;
const editors = /^(?:[gmn]?awk|g?sed|jq)$/;
/** Options of editors whose value is the next argument; that of these is a script. */
const editorTakes = /^(?:-[FvlsLI]|--(?:field-separator|assign|line-length|indent))$/;
const editorTakesTwo = /^--(?:arg|argjson|slurpfile|rawfile)$/;
const editorScript = /^(?:-[a-z]*[ef]|--(?:expression|file|source|from-file))$/;
// To these `--` ends nothing.
const withoutEnd = /^(?:find|convert|magick|mogrify|ffmpeg|java|dd|test|expr)$/;

/** Refuses what would let a param be a program or a script, and returns from where on arguments cannot be options: behind a
 *  `--` of the program itself that stands just before the first of them that begins with a param. */
export function operandsFrom(job: string, argv: readonly Argument[], beginsWithParam: (at: number) => boolean): number {
  const program = findProgram(job, argv);
  const name = nameOf(argv[program]?.text ?? "");
  refuseCode(job, argv, program);
  const end = argv.findIndex(({ text }, at) => at > program && text === "--" && beginsWithParam(at + 1));
  return end === -1 || withoutEnd.test(name) ? Number.POSITIVE_INFINITY : end;
}

/** The place of the program that the others start in the end. */
function findProgram(job: string, argv: readonly Argument[]): number {
  let program = 0;
  for (;;) {
    const name = nameOf(argv[program]?.text ?? "");
    const wrapper = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
    if (wrapper === undefined) return program;
    const next = behindWrapper(argv, program, wrapper);
    const script = argv.slice(program + 1, next).some(({ text }) => wrapper.script?.test(text) === true);
    if (script && argv.some(({ values }) => values)) throw isShell(job, name);
    const chooses = argv.findIndex(
      ({ text, values }, at) =>
        values && at > program && at <= next && !(at < next && wrapper.pairs === true && isPair(text)),
    );
    if (chooses !== -1) {
      throw invalid(
        `argument ${chooses} of command "${job}" is ${JSON.stringify(argv[chooses]?.text)}, before the program that ` +
          `"${name}" starts, so a param could choose the program: place params behind the program`,
      );
    }
    program = next;
  }
}

/** Where the program stands that the wrapper at `from` starts. */
function behindWrapper(argv: readonly Argument[], from: number, { takes = [], own = 0, pairs }: Wrapper): number {
  let left = own;
  let ended = false;
  for (let at = from + 1; at < argv.length; at++) {
    const { text = "" } = argv[at] ?? {};
    // A lone `-` is an option of env.
    if (!ended && text.startsWith("-") && (text !== "-" || pairs === true)) {
      ended = text === "--";
      if (takes.includes(text)) at++;
    } else if (!(pairs === true && isPair(text)) && left-- === 0) return at;
  }
  return argv.length;
}

function isPair(text: string): boolean {
  return /^\w+=/.test(text);
}

// A program of one's own may have such a name, too.
function isShellAt(program: string): boolean {
  const name = nameOf(program);
  if (!shells.test(name)) return false;
  return !oftenOwn.test(name) || /^(?:[^/\\]+|\/(?:usr\/)?(?:local\/)?s?bin\/[^/]+)$/.test(program);
}

// A value inside a script is code, whatever is done about its quotes.
function refuseCode(job: string, argv: readonly Argument[], program: number): void {
  if (!argv.some(({ values }) => values)) return;
  const name = nameOf(argv[program]?.text ?? "");
  if (isShellAt(argv[program]?.text ?? "")) throw isShell(job, name);
  // Programs that are not known here may start others, too.
  const first = argv.findIndex(({ text }) => isShellAt(text) || interpreters.test(nameOf(text)));
  const scripts = argv.flatMap(({ text }, at) => {
    if (first === -1 || at <= first) return [];
    if (gluedScript.test(text)) return [at];
    if (!scriptOption.test(text) && !(at === first + 1 && scriptOptionFirst.test(text))) return [];
    return text.includes("=") ? [at] : [argv[at + 1]?.text === "--" ? at + 2 : at + 1];
  });
  const edits = argv.flatMap(({ text }, at) => (editors.test(nameOf(text)) ? editorScripts(argv, at) : []));
  const script = [...scripts, ...edits].find((at) => argv[at]?.values === true);
  if (script === undefined) return;
  throw invalid(
    `command "${job}" puts a param into a script (argument ${script}), where it would be run as code: ` +
      'give it as an argument of the script: ["node", "-e", "console.log(process.argv[1])", "--", "{name}"]',
  );
}

/** Where the scripts of sed, awk and their like stand: behind an option, or else first. */
function editorScripts(argv: readonly Argument[], program: number): number[] {
  const found: number[] = [];
  for (let at = program + 1; at < argv.length; at++) {
    const { text = "" } = argv[at] ?? {};
    if (editorScript.test(text)) found.push(++at);
    else if (editorTakes.test(text)) at++;
    else if (editorTakesTwo.test(text)) at += 2;
    else if (text.startsWith("-")) found.push(at);
    else return found.some((place) => !argv[place]?.text.startsWith("-")) ? found : [...found, at];
  }
  return found;
}

function isShell(job: string, name: string): Error {
  return invalid(
    `command "${job}" gives params to "${name}", which makes a script of what it is given: write the script in a file that ` +
      'begins with "#!/bin/sh" and name that file as the program: ["./deploy.sh", "--", "{name}"]',
  );
}

/** `/usr/bin/python3.12` and `python.exe` are python. */
function nameOf(program: string): string {
  const name = program.split(/[/\\]/).at(-1) ?? "";
  return name
    .toLowerCase()
    .replace(/\.exe$/, "")
    .replace(/[\d.]+$/, "");
}
