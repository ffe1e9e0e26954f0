const lengthMax = 60;

/** A value for a message: short, on one line, and safe to print whatever it holds. */
export function quote(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > lengthMax ? `${value.slice(0, lengthMax)}…` : value);
    case "object":
      return value === null ? "null" : "an object";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    case "bigint":
      // Writing out a huge bigint takes long and helps nobody; it is a number to the reader anyway.
      return "a bigint";
    default:
      return String(value);
  }
}
