// A program whose handlers let errors escape: promises that nobody awaits, and throws in callbacks. It hears of its parent what to
// emit, all of it at once, and works until it is told to stop or an error ends it.
import { app, listener, open } from "../../src/index.ts";

export type Start = { readonly url: string; readonly strict?: boolean };

const { url, ...how } = JSON.parse(process.argv[2] ?? "{}") as Start;

const never = (): Promise<never> => new Promise<never>(() => undefined);
const inACallback = (): void =>
  queueMicrotask(() => {
    throw new TypeError("thrown in a callback");
  });
const home = app("home", {
  setup(here) {
    here.on("forgets", { name: "forgets" }, () => {
      void Promise.reject(new RangeError("nobody awaited this"));
    });
    here.on("throws", { name: "throws" }, () => {
      inACallback();
      return never();
    });
    here.on("works", { name: "works" }, () => undefined);
    here.every("1h", { name: "report" }, () => {
      inACallback();
      return never();
    });
  },
});
const code = [
  listener("waits", { on: "waits", live: true, run: never }),
  listener("queues", { on: "queues", live: true, mode: "queued", run: never }),
  listener("restarts", { on: "restarts", live: true, mode: "restart", run: never }),
  listener("quick", { on: "quick", live: true, run: () => undefined }),
  listener("crashes", {
    on: "crashes",
    live: true,
    run: () => {
      inACallback();
      return never();
    },
  }),
];

const book = await open(url, { use: [home, ...code] });
process.on("message", (topics: readonly string[]) => {
  for (const topic of topics) book.events.emit(topic);
});
process.once("disconnect", () => process.exit(0));
process.send?.({ sessionId: book.sessionId });
await book.work(how);
process.disconnect?.();
