// How far a verb is, on one line of the terminal while it works; a pipe and a program are told nothing of it.
import { liveLineOn } from "./live-line.ts";

export type ProgressLine = {
  progress(done: number, total: number | null): void;
  stop(): void;
};

export function openProgressLine(out: NodeJS.WriteStream): ProgressLine {
  if (!out.isTTY) return { progress: () => undefined, stop: () => undefined };
  let line: ReturnType<typeof liveLineOn> | undefined;
  let text = "";
  return {
    progress(done, total) {
      text = progressText(done, total);
      if (line !== undefined) return;
      line = liveLineOn([out]);
      line.start(() => text);
    },
    stop: () => line?.stop(),
  };
}

const barWidth = 20;

export function progressText(done: number, total: number | null): string {
  if (total === null || total === 0) return `${done}`;
  const share = Math.min(1, done / total);
  const filled = Math.round(share * barWidth);
  return `${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ${Math.floor(share * 100)} %, ${done} of ${total}`;
}
