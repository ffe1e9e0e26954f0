// events: what was said, who heard it, and saying it again.
import { look } from "./events/look.ts";
import { say } from "./events/say.ts";

export const events = { ...look, ...say };
