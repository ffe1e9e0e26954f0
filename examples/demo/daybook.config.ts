// What `daybook serve --config` goes by: the demo's definitions, and the two servers that its calls may reach.
import type { Config } from "daybook";
import { definitions } from "./definitions.ts";
import { callSettings } from "./history.ts";

export default { use: definitions(".daybook"), calls: callSettings() } satisfies Config;
