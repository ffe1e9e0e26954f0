// What every command of daybook takes from this project.
import type { Config } from "daybook";
import { orderPaid, sendReceipt, tellStock } from "./src/orders.ts";

export default {
  use: [orderPaid, sendReceipt, tellStock],
  zone: "UTC",
  retention: { jobs: "30d", events: "30d" },
} satisfies Config;
