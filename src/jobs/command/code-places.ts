// Where a value in argv would become code: shells and remote shells put their arguments together and read them as a script, and
// interpreters run a text that they are given. The lists cannot be complete: the writer of argv answers for what its program makes of it.
import { invalid } from "../../core/error.ts";

const shells =
  /^(?:(?:ba|da|z|k|mk|a|fi|tc|c|pw|r|s|nu|x?on|rba|elvi)?sh|powershell|cmd|mosh|autossh|rexec|su|runuser|script|parallel|watch|tmux|screen)$/;
/** Also names that people give to programs of their own. */
const oftenOwn = /^(?:script|parallel|watch|tmux|screen)$/;

type Interpreter = Options & {
  /** Options whose value is a script, as letters and as names. */
  readonly code?: RegExp;
  /** Words that stand before a script. */
  readonly words?: RegExp;
  /** Letters behind whose value no options of its own follow. */
  readonly last?: RegExp;
};

const interpreters: Readonly<Record<string, Interpreter>> = {
  bun: {
    short: "bhie:r:c:",
    long: "eval= print= preload= cwd= config= env-file=",
    code: /^(?:[ep]|eval|print)$/,
    words: /^(?:run|exec|x)$/,
  },
  deno: { short: "c:L:", long: "config= import-map= lock=", words: /^(?:run|eval|test|serve)$/ },
  elixir: { short: "e:r:", long: "eval= rpc-eval=", code: /^(?:e|eval|rpc-eval)$/ },
  groovy: { short: "e:", code: /^e$/ },
  julia: { short: "qie:E:p:t:L:J:", long: "eval= print= load=", code: /^(?:[eE]|eval|print)$/ },
  lua: { short: "iEvWe:l:", code: /^e$/ },
  luajit: { short: "e:l:j?", code: /^e$/ },
  node: {
    short: "chive:r:C:",
    long: `eval= print= require= import= loader= experimental-loader= conditions= env-file= env-file-if-exists= input-type= title= no-warnings
      enable-source-maps experimental-strip-types test watch inspect inspect-brk trace-warnings use-strict permission expose-gc`,
    code: /^(?:[ep]|eval|print)$/,
  },
  osascript: { short: "e:l:s:i", code: /^e$/ },
  perl: { short: "01234567acflnpsStTuUvwWXe:E:I:C?D?F?i?M?m?x?V?", code: /^[eE]$/ },
  php: {
    short: "aehHilmnqsvwr:B:R:E:F:f:d:c:z:S:t:",
    long: "run= process-begin= process-code= process-end= define= php-ini= file=",
    code: /^(?:[rBRE]|run|process-.*)$/,
  },
  python: { short: "bBdEhiIOPqRsSuvVxc:m:W:X:Q:", long: "check-hash-based-pycs=", code: /^c$/, last: /^[cm]$/ },
  rscript: { short: "e:", long: "vanilla verbose", code: /^e$/ },
  ruby: {
    short: "01234567acdhlnpsSTUvwWye:I:r:C:E:F?i?K?x?",
    long: "encoding= external-encoding= internal-encoding=",
    code: /^e$/,
  },
  tclsh: { long: "encoding=" },
};
const alike: Readonly<Record<string, string>> = {
  nodejs: "node",
  tsx: "node",
  "ts-node": "node",
  pypy: "python",
  ipython: "python",
  jruby: "ruby",
};

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
  if (!argv.some(({ values }) => values)) return Number.POSITIVE_INFINITY;
  const program = findProgram(job, argv);
  refuseCode(job, argv, program);
  const end = argv.findIndex(({ text }, at) => at > program && text === "--" && beginsWithParam(at + 1));
  return end === -1 || withoutEnd.test(nameAt(argv, program)) ? Number.POSITIVE_INFINITY : end;
}

// A value inside a script is code, whatever is done about its quotes.
function refuseCode(job: string, argv: readonly Argument[], program: number): void {
  const { text = "" } = argv[program] ?? {};
  const name = nameAt(argv, program);
  if (shells.test(name) && (!oftenOwn.test(name) || isOfSystem(text))) {
    const why = `gives params to "${name}", which makes a script of what it is given`;
    throw invalid(`command "${job}" ${why}: write the script ${inAFile}`);
  }
  const interpreter = interpreterAt(argv, program);
  const scripts =
    interpreter !== undefined
      ? optionsOf(argv, program, interpreter)
      : editors.test(name)
        ? editorScripts(argv, program)
        : behindUnknown(argv, program);
  const script = scripts.find((at) => argv[at]?.values === true);
  if (script === undefined) return;
  throw invalid(
    `command "${job}" puts a param into a script (argument ${script}), where it would be run as code: ` +
      'give it as an argument of the script: ["node", "-e", "console.log(process.argv[1])", "--", "{name}"]',
  );
}

/** The options of an interpreter, with their values, up to its script: some of them are code, or choose some. What follows an option
 *  that is not known may be its value, and so be followed by others. */
function optionsOf(argv: readonly Argument[], program: number, interpreter: Interpreter): number[] {
  const found: number[] = [];
  let maybeValue = false;
  for (let at = program + 1; at < argv.length; at++) {
    const { text = "" } = argv[at] ?? {};
    if (text === "--") return maybeValue ? [...found, at + 1] : found;
    if (text.startsWith("-") && text !== "-") {
      // Glued to a value, an option ends where the value begins.
      const option = readOption(interpreter, text.replace(/\{.*/s, ""));
      found.push(at);
      maybeValue = option === undefined;
      if (option?.takesNext === true && !text.includes("{")) found.push(++at);
      if (argv[at]?.text === "--") found.push(at + 1);
      if (interpreter.last?.test(option?.name ?? "") === true) return found;
    } else if (maybeValue || interpreter.words?.test(text) === true) {
      found.push(at);
      maybeValue = interpreter.words?.test(text) === true && /^e(?:val|xec)$/.test(text);
    } else return found;
  }
  return found;
}

/** A program that is not known may start a shell or an interpreter, too: it counts where its script follows at once. */
function behindUnknown(argv: readonly Argument[], program: number): number[] {
  return argv.flatMap((_, at) => {
    const { text = "" } = argv[at + 1] ?? {};
    if (at <= program) return [];
    if (shells.test(nameAt(argv, at)) && /^-[a-z]*c$/.test(text)) return [at + 2];
    const interpreter = interpreterAt(argv, at);
    const option = interpreter === undefined || !text.startsWith("-") ? undefined : readOption(interpreter, text);
    return option !== undefined && interpreter?.code?.test(option.name) === true ? [at + 1, at + 2] : [];
  });
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

function interpreterAt(argv: readonly Argument[], at: number): Interpreter | undefined {
  const name = nameAt(argv, at);
  return ofName(interpreters, alike[name] ?? name);
}

// Which program argv starts, behind programs that start another one (env, nice, sudo …). Only the one that is started in the end counts,
// so the options of those before it have to be known, and one that is not is refused.

/** One argument as the definition has it; `values` says whether it has places for params. */
export type Argument = { readonly text: string; readonly values: boolean };

export type Options = {
  /** Letters. Behind one, `:` says that its value is the rest of the argument or else the next one, `?` that it is the rest alone. */
  readonly short?: string;
  /** Names without `--`. Behind one, `=` says that its value may be the next argument. */
  readonly long?: string;
};

type Starter = Options & {
  /** Arguments of its own before the program, such as the time of `timeout`. */
  readonly own?: number;
  /** Variables that it sets stand before the program. */
  readonly pairs?: boolean;
};

// What makes a script of the rest (`env -S`, `sudo -s`, `flock -c`) is left out, and so refused.
const starters: Readonly<Record<string, Starter>> = {
  bunx: { long: "bun silent verbose" },
  busybox: {},
  chroot: { long: "userspec= groups= skip-chdir", own: 1 },
  chrt: { short: "abdfiorvRT:P:D:", long: "batch deadline fifo idle other rr all-tasks reset-on-fork verbose", own: 1 },
  chronic: { short: "ev" },
  doas: { short: "nu:C:" },
  "dumb-init": { short: "cr:v", long: "single-child rewrite= verbose" },
  env: { short: "i0u:C:a:v", long: "ignore-environment null unset= chdir= argv0= debug", pairs: true },
  envdir: { own: 1 },
  flock: {
    short: "sexunow:E:F",
    long: "shared exclusive unlock nonblock wait= timeout= close no-fork verbose",
    own: 1,
  },
  gosu: { own: 1 },
  ionice: { short: "c:n:t", long: "class= classdata= ignore" },
  nice: { short: "n:", long: "adjustment=" },
  nohup: {},
  npx: { short: "yqp:", long: "yes no quiet package=" },
  pnpx: { long: "silent package=" },
  nsenter: {
    short: "t:m?u?i?n?p?U?C?T?ar?w?W:S:G:Fe",
    long: "all target= mount uts ipc net pid user cgroup time root wd wdns= setuid= setgid= no-fork env preserve-credentials",
  },
  setpriv: {
    long: `reuid= regid= groups= clear-groups keep-groups init-groups inh-caps= ambient-caps= bounding-set= securebits= no-new-privs nnp
      pdeathsig= selinux-label= apparmor-profile= reset-env`,
  },
  setsid: { short: "cfw", long: "ctty fork wait" },
  setuidgid: { own: 1 },
  stdbuf: { short: "i:o:e:", long: "input= output= error=" },
  strace: { short: "cCdDfFiknqrtTvVwxyYzZo:e:p:s:u:E:a:O:S:P:b:I:U:X:" },
  "su-exec": { own: 1 },
  sudo: {
    short: "AbEHnPSku:g:h:p:C:D:R:r:t:T:U:",
    long: `askpass background preserve-env set-home non-interactive preserve-groups stdin reset-timestamp user= group= host= prompt=
      close-from= chdir= chroot= role= type= command-timeout= other-user=`,
    pairs: true,
  },
  taskset: { short: "ac", long: "all-tasks cpu-list", own: 1 },
  time: { short: "apqvf:o:", long: "append portability quiet verbose format= output=" },
  timeout: { short: "fpvk:s:", long: "foreground preserve-status verbose kill-after= signal=", own: 1 },
  tini: { short: "svwglp:e:" },
  toybox: {},
  unshare: {
    short: "imnpuUCTfrcS:G:R:w:",
    long: `ipc mount net pid uts user cgroup time fork map-root-user map-current-user map-auto mount-proc kill-child keep-caps
      map-user= map-group= propagation= setgroups= root= wd= setuid= setgid=`,
  },
  xargs: {
    short: "0rtpoxa:d:E:I:L:n:P:s:",
    long: `null no-run-if-empty verbose interactive open-tty exit arg-file= delimiter= max-lines max-args= max-procs= max-chars=
      process-slot-var=`,
  },
};

/** They start others, and which is not told from here. */
const opaque = new RegExp(
  `^(?:setarch|linux|systemd-(?:run|inhibit)|machinectl|pkexec|firejail|bwrap|proot|fakeroot|fakechroot|start-stop-daemon|daemonize|chpst|
  softlimit|prlimit|numactl|cgexec|perf|gdb|valgrind|ltrace|unbuffer|entr|watchexec|xvfb-run|dbus-run-session|socat|ncat|nc|
  proxychains|torsocks|lxc-attach|expect)$`.replaceAll(/\s+/g, ""),
);

/** The place of the program that the others start in the end. */
export function findProgram(job: string, argv: readonly Argument[]): number {
  let program = 0;
  for (;;) {
    const name = nameAt(argv, program);
    if (opaque.test(name) && isOfSystem(argv[program]?.text ?? "")) throw notTold(job, name);
    const starter = ofName(starters, name);
    if (starter === undefined) return program;
    program = behindStarter(job, argv, program, starter);
  }
}

/** Where the program stands that the one at `from` starts. */
function behindStarter(job: string, argv: readonly Argument[], from: number, starter: Starter): number {
  const { own = 0, pairs = false } = starter;
  let left = own;
  let ended = false;
  for (let at = from + 1; at < argv.length; at++) {
    const { text = "", values } = argv[at] ?? {};
    if (values === true) throw choosesProgram(job, argv, from, at);
    if (!ended && text === "--") ended = true;
    // A lone `-` is an option of env.
    else if (!ended && text.startsWith("-") && (text !== "-" || pairs)) {
      const option = text === "-" ? { takesNext: false } : readOption(starter, text);
      if (option === undefined) throw notTold(job, nameAt(argv, from), text);
      if (option.takesNext && argv[++at]?.values === true) throw choosesProgram(job, argv, from, at);
    } else if (pairs && /^\w+=/.test(text)) continue;
    else if (left-- > 0) ended = true;
    else if (text.startsWith("-")) throw notTold(job, nameAt(argv, from), text);
    else return at;
  }
  return argv.length;
}

type Option = { readonly name: string; readonly takesNext: boolean };

/** What an argument says that begins with `-`; undefined when it has an option that is not known. The name is that of its last. */
export function readOption({ short = "", long = "" }: Options, text: string): Option | undefined {
  if (text.startsWith("--")) {
    const [name = ""] = text.slice(2).split("=");
    const names = long.split(/\s+/);
    const takesNext = names.includes(`${name}=`);
    return takesNext || names.includes(name) ? { name, takesNext: takesNext && !text.includes("=") } : undefined;
  }
  for (let at = 1; at < text.length; at++) {
    const name = text[at] ?? "";
    const found = /\w/.test(name) ? short.indexOf(name) : -1;
    if (found === -1) return undefined;
    const kind = short[found + 1];
    if (kind === ":" || kind === "?") return { name, takesNext: kind === ":" && at === text.length - 1 };
  }
  return { name: text.at(-1) ?? "", takesNext: false };
}

function choosesProgram(job: string, argv: readonly Argument[], starter: number, at: number): Error {
  return invalid(
    `argument ${at} of command "${job}" is ${JSON.stringify(argv[at]?.text)}, before the program that ` +
      `"${nameAt(argv, starter)}" starts, so a param could choose the program or what it loads: place params behind the program`,
  );
}

export const inAFile =
  'in a file that begins with "#!/bin/sh" and name that file as the program: ["./deploy.sh", "--", "{name}"]';

function notTold(job: string, name: string, option?: string): Error {
  const by = option === undefined ? "" : ` by ${JSON.stringify(option)}`;
  return invalid(
    `command "${job}" gives params to what "${name}" starts${by}, and which program that is cannot be told here: write the call ${inAFile}`,
  );
}

export function ofName<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

// A program of one's own may have such a name, too.
export function isOfSystem(program: string): boolean {
  return /^(?:[^/\\]+|\/(?:.*\/)?s?bin\/[^/]+)$/.test(program);
}

/** `/usr/bin/python3.12` and `python.exe` are python. */
function nameAt(argv: readonly Argument[], at: number): string {
  const name = argv[at]?.text.split(/[/\\]/).at(-1) ?? "";
  return name
    .toLowerCase()
    .replace(/\.exe$/, "")
    .replace(/[\d.]+$/, "");
}
