const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const shortNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** The common shapes of an expression in words; the others are called by the expression itself. */
export function cronWords(expression: string, fields: readonly string[]): string {
  const [second = "", minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const when = timeWords(second, minute, hour);
  const days = month === "*" ? dayWords(day, weekday) : undefined;
  if (when === undefined || days === undefined) return `cron ${expression}`;
  return days === "every day" && when.startsWith(", ") ? when.slice(2) : `${days}${when}`;
}

function timeWords(second: string, minute: string, hour: string): string | undefined {
  if (second !== "0") return second === "*" && minute === "*" && hour === "*" ? ", every second" : undefined;
  if (hour === "*") {
    if (minute === "*") return ", every minute";
    if (minute.startsWith("*/")) return `, every ${minute.slice(2)} minutes of the hour`;
    return isNumber(minute) ? `, every hour at minute ${minute}` : undefined;
  }
  return isNumber(hour) && isNumber(minute) ? ` at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}` : undefined;
}

function dayWords(day: string, weekday: string): string | undefined {
  const anyDay = day === "*" || day === "?";
  const anyWeekday = weekday === "*" || weekday === "?";
  if (anyDay && anyWeekday) return "every day";
  if (anyDay && (weekday === "1-5" || weekday === "MON-FRI")) return "Monday to Friday";
  if (anyDay) return weekdayName(weekday);
  if (!anyWeekday) return undefined;
  if (day === "L") return "on the last day of each month";
  return isNumber(day) ? `on day ${day} of each month` : undefined;
}

function weekdayName(text: string): string | undefined {
  const index = isNumber(text) ? Number(text) % 7 : shortNames.indexOf(text);
  const name = weekdays[index];
  return name === undefined ? undefined : `every ${name}`;
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}
