// Which test files share a process. To start one and to read the sources takes a third of a second of a processor, which is
// most of what many a file costs, and what one file has warmed up runs faster for the next. So the files of a unit run one
// after the other in one process, and several units at once.

export type TestFile = { readonly path: string; readonly text: string };

/** About 1,300 lines. Shorter units would read the sources more often, longer ones would leave a processor idle at the end. */
const unitLength = 60_000;

// They start processes, kill them and wait in real time.
const killing = /-processes\//;
// They look at the whole repo, or start servers.
const special = /^test\/(?:[^/]+$|docs\/|nats\/|support\/)/;

// Processor time, memory, handles, warnings, signals, timers, module hooks and the environment are the whole process's: whoever
// counts or changes them would find what a neighbour did, or spoil it for him.
const processWide =
  /CpuUsage|memoryUsage|getActiveResourcesInfo|registerHooks|mock\.timers|process\.(?:on|once|chdir)\(|process\.env\[[^\]]*\] = |loop-table|flushCompileCache/;

export function needsOwnProcess({ path, text }: TestFile): boolean {
  return killing.test(path) || special.test(path) || processWide.test(text);
}

/** Every file is in exactly one unit. The units come in the order in which they should start, the longest first. */
export function testUnits(files: readonly TestFile[]): string[][] {
  const units: TestFile[][] = [];
  const open = new Map<string, TestFile[]>();
  for (const file of files) {
    const folder = file.path.slice(0, file.path.lastIndexOf("/"));
    const unit = needsOwnProcess(file) ? undefined : open.get(folder);
    if (unit !== undefined && length(unit) + file.text.length <= unitLength) {
      unit.push(file);
      continue;
    }
    const begun = [file];
    units.push(begun);
    if (!needsOwnProcess(file)) open.set(folder, begun);
  }
  return units.toSorted((a, b) => effort(b) - effort(a)).map((unit) => unit.map(({ path }) => path));
}

function length(unit: readonly TestFile[]): number {
  return unit.reduce((sum, { text }) => sum + text.length, 0);
}

/** Who kills processes takes longest, and who needs a process of his own takes longer than his text tells. */
function effort(unit: readonly TestFile[]): number {
  const [first] = unit;
  if (first === undefined) return 0;
  return length(unit) + (killing.test(first.path) ? unitLength : 0) + (needsOwnProcess(first) ? unitLength / 2 : 0);
}
