// The front door: every public name of the package.
export { open, type OpenOptions } from "./open/open.ts";
export type { LogFields, Logger, LogLevel, LogLine, LogTo } from "./open/log.ts";
export type { Definition } from "./open/use.ts";
export { job, type JobContext, type JobInfo } from "./define/job.ts";
export { command, type CommandOptions } from "./jobs/command/command.ts";
export type { CommandResult } from "./jobs/command/command.ts";
export type { CommandEnvironment } from "./jobs/command/program.ts";
export type { CommandRecord } from "./jobs/command/command-record.ts";
export type { Artifact } from "./jobs/command/artifacts.ts";
export type { Book, BookZone } from "./book/book.ts";
export type { Access } from "./access/access.ts";
export type { Audit, AuditEntry, AuditFilter, AuditNote } from "./access/audit.ts";
export type { Caller } from "./access/caller.ts";
export type { LinkOptions, Login } from "./access/login.ts";
export type {
  NewOperation,
  Operation,
  OperationFilter,
  Operations,
  OperationStatus,
  Operator,
  Running,
} from "./access/operations.ts";
export type { Begun, Replies, Reply, ReplyKey } from "./access/replies.ts";
export type { MadeToken, Role, TokenFilter, TokenOptions, TokenRecord, Tokens } from "./access/token.ts";
export type { Retained } from "./open/retain.ts";
export type { RetainOptions, Retention } from "./open/retention.ts";
export type { Bulk, BulkOptions } from "./jobs/bulk.ts";
export type { JobRule } from "./jobs/retain/retain.ts";
export type { TelemetryReads } from "./telemetry/telemetry.ts";
export type { AppSummary, Overview } from "./telemetry/report/overview.ts";
export type { Bucket, BucketSpan } from "./telemetry/report/overview.ts";
export type { ErrorGroup } from "./telemetry/report/errors.ts";
export type { Eviction } from "./telemetry/retention/remove.ts";
export type { LogEntry, LogFilter, RunLog } from "./telemetry/log.ts";
export type { ScopeOptions } from "./telemetry/report/scope.ts";
export type { Health, RunSummary, Tally } from "./telemetry/report/summary.ts";
export type { Config, ConfigCommand } from "./define/config.ts";
export type { ReadTx, UserTx } from "./book/user-tx.ts";
export type { Finding } from "./book/doctor.ts";
export type { BehindOf, BookHealth, HealthReason, HealthTopic, Verdict } from "./book/health.ts";
export type { CauseEdge, CauseKind, CauseNode } from "./book/cause-node.ts";
export type { Causes } from "./book/causes.ts";
export type {
  DefinitionDetails,
  DefinitionFilter,
  DefinitionKind,
  DefinitionRecord,
  Definitions,
  JobSettings,
} from "./book/definitions.ts";
export type { Found, FoundKind, FoundPage } from "./book/find.ts";
export type { Behind } from "./events/behind.ts";
export type { DueJob, Paused, PausedNow, Standing } from "./jobs/explain/standing.ts";
export type { CallCounts } from "./calls/read-calls.ts";
export type { Fires } from "./schedules/read-schedule.ts";
export type { BookSize } from "./storage/info.ts";
export type { Counted } from "./core/count.ts";
export type { Mended } from "./book/doctor.ts";
export type { BackupReport } from "./storage/backup.ts";
export type { BookInfo } from "./storage/info.ts";
export type { JoinedClient, Row } from "./storage/store.ts";
export type { Value } from "./storage/sql.ts";
export type { RunOwner, RunRecord, RunStatus } from "./telemetry/run.ts";
export type { RunFilter, RunPage } from "./telemetry/runs.ts";
export type { Runs } from "./telemetry/runs.ts";
export type { Session, Sessions, SessionsPage } from "./telemetry/session.ts";
export type { Job, JobOptions } from "./jobs/define.ts";
export type { FireInfo } from "./schedules/schedule.ts";
export type { EnqueueOptions, OnConflict } from "./jobs/define.ts";
export type { Enqueued } from "./jobs/enqueue.ts";
export type { AwaitOptions } from "./jobs/result.ts";
export { giveUp } from "./core/retry.ts";
export type { AwaitableJob } from "./jobs/result.ts";
export type { Step } from "./jobs/run/step.ts";
export type { Explanation } from "./jobs/explain/explain.ts";
export type {
  GroupBuilder,
  GroupFilter,
  GroupMember,
  GroupOptions,
  GroupPage,
  GroupRecord,
} from "./jobs/group/groups.ts";
export type { Groups, GroupVerbs, MadeGroup } from "./jobs/group/groups.ts";
export type { DirectVerbs, RunNowOptions } from "./jobs/direct/run-now.ts";
export type { ReservationRecord, Reservations, ReserveOptions } from "./jobs/direct/reservation.ts";
export type { JobDetails, JobFilter, JobPage, JobRecord, JobRun, ListedKind } from "./jobs/explain/list.ts";
export type { Jobs, JobVerbs } from "./jobs/jobs.ts";
export type { Recovery } from "./jobs/settle/rescue.ts";
export type { JobInLine, LineOptions, LinePage, Place } from "./jobs/queues.ts";
export type { QueueRecord, Queues, QueueVerbs } from "./jobs/queues.ts";
export type { TemplateRecord } from "./jobs/template/template.ts";
export type {
  TemplateChanges,
  TemplateFilter,
  TemplateOptions,
  TemplatePage,
  Templates,
  TemplateSettings,
  TemplateVerbs,
} from "./jobs/template/template.ts";
export type { FinishedStatus } from "./jobs/job.ts";
export type { Edited } from "./jobs/line/edit.ts";
export type { Moved, MoveTo } from "./jobs/line/edit.ts";
export type { Normalised, NormaliseOptions, QueueLimits } from "./jobs/queues.ts";
export type { Backoff } from "./core/retry.ts";
export type { Rate } from "./jobs/claim/limit.ts";
export { entity, relation } from "./define/record.ts";
export { and, not, or, type Condition } from "./records/query/condition.ts";
export type { Records } from "./book/book-records.ts";
export type { Entity, EntityOptions } from "./records/define/definition.ts";
export type { Relation, RelationKey, RelationOptions } from "./records/define/definition.ts";
export type { Entry, EntryOf, KeyOf, ValueOf } from "./records/entry.ts";
export type { RecordReads } from "./records/record-reads.ts";
export type { RecordVerbs, TxRecordVerbs } from "./records/record-verbs.ts";
export type { DeleteOptions, WriteOptions, Written } from "./records/write/write.ts";
export type { AsOf, CommitNotes, CommitPage, CommitRecord } from "./records/commit.ts";
export type { Field, Fields } from "./records/query/field.ts";
export type { Query, RecordPage } from "./records/query/query.ts";
export type { Hop, Reached, TraverseOptions } from "./records/traverse.ts";
export type { WatchedChange, WatchedCommit, WatchOptions } from "./records/watch.ts";
export type { ExportOptions } from "./records/export.ts";
export type { Imported, ImportOptions } from "./records/import.ts";
export type { RecordTypeInfo } from "./records/define/record-type.ts";
export type { ChangePage, ChangeRecord, DiffPage, Difference } from "./records/changes.ts";
export type { Blamed, HistoryPage, Version } from "./records/history.ts";
export { schedule } from "./define/schedule.ts";
export type { AnySchedule, DefinitionOptions, ScheduleOptions, ScheduleChanges } from "./schedules/options.ts";
export type { FirePreview, PreviewOptions, PreviewTiming, Schedules, ScheduleVerbs } from "./schedules/schedules.ts";
export type { DecisionPage, DecisionRecord, SchedulePage, ScheduleRecord, Why } from "./schedules/read-schedule.ts";
export { sink, type SinkFunction, type SinkOptions, type SinkTarget } from "./define/sink.ts";
export type { SinkRecord, Sinks } from "./book/sinks.ts";
export type { Broker, Publication } from "./calls/sink/broker.ts";
export type { CloudEvent } from "./calls/sink/broker.ts";
export { nats } from "./calls/sink/nats/nats.ts";
export type { NatsAuth } from "./calls/sink/nats/options.ts";
export type { NatsOptions } from "./calls/sink/nats/options.ts";
export type { NatsTls } from "./calls/sink/nats/options.ts";
export type { Resealed } from "./calls/reseal.ts";
export type { Notice, ShownNotice, Webhook } from "./jobs/notice.ts";
export type { CallOptions } from "./calls/room.ts";
export type { CallRequest } from "./calls/request/content.ts";
export type { Kept, KeptAnswer, ShownRequest } from "./calls/request/kept.ts";
export type { SubmitOptions, When } from "./calls/submit.ts";
export type { Submitted } from "./calls/submit.ts";
export type { CancelledCall, ResendOptions } from "./calls/calls.ts";
export type { CallAttempt, CallDetails, CallRecord } from "./calls/read-calls.ts";
export type { CallExplanation } from "./calls/read-calls.ts";
export type { CallFilter, CallPage, GetCallOptions } from "./calls/read-calls.ts";
export type { Calls, CallVerbs } from "./calls/calls.ts";
export type { CallOutcome, CallPolicy, CallStatus } from "./calls/call.ts";
export { event } from "./define/event.ts";
export { listener, type ListenerContext, type LiveListenerContext } from "./define/listener.ts";
export { where, type Predicate, type Seen, type Where } from "./events/live/where.ts";
export type { LiveDefinition, LiveMode, LiveOptions } from "./events/live/define.ts";
export type { LiveEvent, EventInfo } from "./events/event.ts";
export type { LiveListener } from "./events/live/bus.ts";
export type { LiveVerbs } from "./events/live/live.ts";
export type { JobEndedPayload, Published } from "./events/publish.ts";
export type { AnyEvent, AnyListener, Event, EventOptions, ListenerOptions, StartFrom } from "./events/define.ts";
export type { PublishOptions } from "./events/define.ts";
export type { DeadLetters, LettersOptions, RedriveOptions } from "./events/dead-letters.ts";
export type { DeadLetterGroup, DeadLetterPage, DeadLetterRecord, LetterFilter } from "./events/dead-letters.ts";
export type { Events, EventVerbs, Replayed, ReplayFilter, ReplayOptions } from "./events/events.ts";
export type { Lag, ListenerRecord, Listeners, SkipTo } from "./events/listeners.ts";
export type { DeliveryRecord, DeliveryStatus, EventStatus } from "./events/read-event.ts";
export type { EventFilter, EventPage, EventRecord, EventTree } from "./events/read-event.ts";
export type { Held, Released, ReleaseOptions } from "./book/copy.ts";
export type { HeldFilter, HeldJobs } from "./jobs/wait/hold.ts";
export type { HeldSchedules } from "./schedules/write-schedule.ts";
export type { Worker, WorkerOptions } from "./jobs/worker/start-worker.ts";
export type { Workers } from "./jobs/lease/workers.ts";
export type { WorkerGrant } from "./jobs/lease/lease.ts";
export type { AttachedWorker, WorkerAttachOptions, WorkerLeft } from "./jobs/lease/attach.ts";
export type { LeasedJob, WorkerClaimOptions } from "./jobs/lease/poll.ts";
export type { LeaseEnded, LeaseFailOptions, LeaseLogOptions } from "./jobs/lease/report.ts";
export type { LeaseProgressOptions, LeaseRenewed } from "./jobs/lease/report.ts";
export { app, type App, type AppScheduleOptions, type RegistrationOptions } from "./define/app.ts";
export type { Apps } from "./book/app-verbs.ts";
export type { AnyApp, AppOptions, ErrorPlace, OnError } from "./apps/define.ts";
export type {
  AppDetails,
  AppInstance,
  AppListener,
  AppProcess,
  AppRecord,
  RegistrationRecord,
} from "./apps/read-apps.ts";
export type { AppRemoved } from "./apps/remove.ts";
export type { AppStopped } from "./book/app-verbs.ts";
export type { PendingEvents } from "./apps/instance.ts";
export { DaybookError, errorCodes, isDaybookError, type ErrorCode } from "./core/error.ts";
export { type Clock } from "./core/clock.ts";
export { manualClock, type ManualClock } from "./core/manual-clock.ts";
export { seededRandom, type Random } from "./core/id.ts";
export { type Duration } from "./core/duration.ts";
export { limits } from "./core/limits.ts";
