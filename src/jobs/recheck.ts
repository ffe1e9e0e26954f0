// Others may take an overdue session for dead, so it neither claims nor starts anything. A turn stamps the beat, or finds
// the session ended; when it could do neither, the next try is with the next beat, or a little later.
import type { Engine } from "./engine.ts";

const againMs = 200;

/** Asked whenever there is something to do: true when a turn should find out whether the session still lives. */
export function createRecheck({ clock, overdue }: Pick<Engine, "clock" | "overdue">, poke: () => void): () => boolean {
  let lately = false;
  return () => {
    if (lately || !overdue()) return false;
    lately = true;
    clock.after(againMs, () => {
      lately = false;
      poke();
    });
    return true;
  };
}
