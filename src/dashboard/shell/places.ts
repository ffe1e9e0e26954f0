// The pages, in the order of the navigation: where they are, and the letter that goes there after `g`.
import type { IconName } from "../parts/icon.tsx";

export type Place = {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly letter: string;
  readonly section: "now" | "work" | "sources" | "memory" | "book";
};

export const places: readonly Place[] = [
  { path: "/", title: "Overview", icon: "overview", letter: "o", section: "now" },
  { path: "/jobs", title: "Jobs", icon: "job", letter: "j", section: "work" },
  { path: "/queues", title: "Queues", icon: "queue", letter: "q", section: "work" },
  { path: "/groups", title: "Groups", icon: "group", letter: "u", section: "work" },
  { path: "/templates", title: "Templates", icon: "template", letter: "t", section: "work" },
  { path: "/schedules", title: "Schedules", icon: "schedule", letter: "s", section: "sources" },
  { path: "/events", title: "Events", icon: "event", letter: "e", section: "sources" },
  { path: "/listeners", title: "Listeners", icon: "listener", letter: "l", section: "sources" },
  { path: "/apps", title: "Apps", icon: "app", letter: "a", section: "sources" },
  { path: "/dead-letters", title: "Dead letters", icon: "dead", letter: "d", section: "sources" },
  { path: "/calls", title: "Calls", icon: "call", letter: "c", section: "sources" },
  { path: "/sinks", title: "Sinks", icon: "sink", letter: "k", section: "sources" },
  { path: "/records", title: "Records", icon: "record", letter: "r", section: "memory" },
  { path: "/commits", title: "Commits", icon: "commit", letter: "m", section: "memory" },
  { path: "/runs", title: "Runs", icon: "run", letter: "n", section: "memory" },
  { path: "/sessions", title: "Sessions", icon: "session", letter: "i", section: "book" },
  { path: "/settings", title: "Settings and data", icon: "settings", letter: "b", section: "book" },
];

export const sectionTitles = { now: "", work: "Work", sources: "Sources", memory: "Memory", book: "Book" } as const;
