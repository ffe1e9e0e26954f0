// schedules: jobs and events that are due again and again, and what was made of each slot.
import { look } from "./schedules/look.ts";
import { make } from "./schedules/make.ts";
import { steer } from "./schedules/steer.ts";

export const schedules = { ...look, ...make, ...steer };
