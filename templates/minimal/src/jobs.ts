// What this project can do. A job runs once, survives a crash, and is tried again when it fails.
import { job, schedule } from "daybook";

export const greet = job<{ name: string }>("greet", {
  attempts: 3,
  run: ({ name }) => `Hello, ${name}.`,
});

export const everyMorning = schedule("every-morning", {
  cron: "0 7 * * *",
  job: greet,
  params: { name: "early bird" },
});
