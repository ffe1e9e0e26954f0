// calls: HTTP requests that will be, or were, made.
import { look } from "./calls/look.ts";
import { make } from "./calls/make.ts";

export const calls = { ...look, ...make };
