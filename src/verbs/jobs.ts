// jobs: the work of a book.
import { look } from "./jobs/look.ts";
import { make } from "./jobs/make.ts";
import { steer } from "./jobs/steer.ts";

export const jobs = { ...look, ...make, ...steer };
