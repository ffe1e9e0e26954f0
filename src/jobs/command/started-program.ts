// Which program argv starts, behind programs that start another one (env, nice, sudo …). Only the one that is started in the end counts,
// so the options of those before it have to be known, and one that is not is refused.
import { invalid } from "../../core/error.ts";

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

export function nameAt(argv: readonly Argument[], at: number): string {
  return nameOf(argv[at]?.text ?? "");
}

/** `/usr/bin/python3.12` and `python.exe` are python. */
function nameOf(program: string): string {
  const name = program.split(/[/\\]/).at(-1) ?? "";
  return name
    .toLowerCase()
    .replace(/\.exe$/, "")
    .replace(/[\d.]+$/, "");
}
