// What `daybook serve --config` goes by: the demo's definitions, and the two servers that its calls may reach.
import type { Config } from "daybook";
import { definitions } from "./definitions.ts";
import { callSettings, filesOf } from "./history.ts";
import { world } from "./world.ts";

export default { use: definitions(filesOf(world.book)), calls: callSettings() } satisfies Config;
