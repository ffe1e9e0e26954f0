// Everything that the demo is made of.
import type { Definition } from "daybook";
import { home } from "./home.ts";
import { sendReceipt } from "./mail.ts";
import { visitors } from "./orders.ts";
import { chargeCard, refund } from "./payments.ts";
import { Contains, Customer, Order, OrderPacked, OrderPaid, OrderPlaced, Placed, Product } from "./records.ts";
import { research } from "./research.ts";
import { hold, orderStock, pack, printLabel, warehouse } from "./shipping.ts";
import { tenants } from "./tenants.ts";
import { timetable } from "./timetable.ts";

const records = [Customer, Product, Order, Placed, Contains];
const events = [OrderPlaced, OrderPaid, OrderPacked];

/** `folder` is where programs leave their files. */
export function definitions(folder: string): Definition[] {
  const shop = [visitors, chargeCard, refund, sendReceipt, orderStock, pack, hold, printLabel, warehouse()];
  return [...records, ...events, ...shop, ...home, ...research(folder), ...tenants, ...timetable];
}
