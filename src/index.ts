// The front door: every public name of the package.
export { open, type OpenOptions } from "./open.ts";
export type { Book } from "./book.ts";
export type { ReadTx, UserTx } from "./user-tx.ts";
export type { Finding } from "./examine.ts";
export type { BackupReport } from "./storage/backup.ts";
export type { BookInfo } from "./storage/info.ts";
export type { Row } from "./storage/store.ts";
export type { Value } from "./storage/sql.ts";
export type { Session, Sessions, SessionsPage } from "./telemetry/sessions.ts";
export { DaybookError, errorCodes, isDaybookError, type ErrorCode } from "./core/error.ts";
export { type Clock } from "./core/clock.ts";
export { manualClock, type ManualClock } from "./core/manual-clock.ts";
export { seededRandom, type Random } from "./core/random.ts";
export { type Duration } from "./core/duration.ts";
export { limits } from "./core/limits.ts";
