/**
 * Every limit of the product, with its reason. Going over one is a clear `invalid` error that names the limit, never
 * a cut-off value. Units come last in the names.
 */
export const limits = {
  // Parameters, results and record bodies travel through one writer; a bigger body belongs in a file or a bucket.
  jsonBytesMax: 1_048_576,
  // Deep enough for any honest document, shallow enough that walking one by recursion cannot overflow the stack.
  jsonDepthMax: 64,
  // Keys are part of indexes; PostgreSQL refuses index entries above about 2700 bytes, tenant and name included.
  keyBytesMax: 512,
  // Names appear in indexes, URLs, logs and table headings.
  nameBytesMax: 200,
  // A topic is a name that indexes hold and people read; what varies without end belongs into the payload or the key.
  topicBytesMax: 512,
  // A listener of more patterns than this wants one with a wildcard.
  listenerTopicsMax: 100,
  // Headers are for routing and tracing; what is said belongs into the payload.
  headersMax: 32,
  headersBytesMax: 8192,
  // What was said before is brought to a new listener in slices of so many events, each a transaction.
  catchUpEventsMax: 1000,
  // A tree of more events than this is nobody's to look at; the first of them say what it is.
  lineageEventsMax: 1000,
  // Tags are for finding things by hand; each one is a row in an index.
  tagsMax: 32,
  tagBytesMax: 128,
  // A chain of runs that start runs ends here, so two listeners that feed each other stop instead of filling the disk.
  chainDepthMax: 20,
  // A group shares one fsync; more units gain little and make the first one wait for the last.
  groupUnitsMax: 256,
  // A group stops taking units after this long, so that the event loop gets its turn.
  groupMsMax: 5,
  // A write unit that awaits something other than its transaction holds up every other writer.
  foreignAwaitMsMax: 1000,
  // How long we ask for a file that another process holds before saying `busy`.
  busyMsMax: 5000,
  // A wall clock that goes back by no more than this is waited for: time servers correct by so much.
  clockSmoothMs: 1000,
  // A wall clock that goes back further, to a time it never had, is not believed for so long.
  clockHoldMs: 5000,
  // Clocks of two machines may differ by so much; what is further ahead was written by one that was wrong. A clock that was set is
  // believed after as long, where a mistake can be made good.
  clockAheadMs: 60_000,
  // Nothing is removed for its age until a clock that was set has kept its new time for so long.
  clockSettleMs: 3_600_000,
  // A read that takes longer is ended: it keeps others waiting, the WAL from shrinking (SQLite) and vacuum from cleaning
  // (PostgreSQL). Reports, pages of exports and the engine's own reads look at more.
  readMs: 5000,
  reportMs: 30_000,
  // Reads at once, and those of one tenant among them, so that another's turn comes at once. On SQLite each has a process.
  readsMax: 4,
  readsPerTenant: 2,
  // The same for reads of one moment (book.read), which last as long as the function that reads.
  snapshotsMax: 4,
  snapshotsPerTenant: 3,
  // One tenant's reads that wait for their turn; more would wait for longer than anybody does.
  readsWaitingMax: 1000,
  // A read on SQLite that has had a processor for so long is slow, and lets all other processes come first.
  readYieldMs: 20,
  // After a slow read, so many quick ones of its tenant still let the others come first.
  readsPatient: 4,
  // A process that reads is ended when it was not needed for so long, and before that when there are as many as may read at once
  // and another one is needed.
  readerIdleMs: 10_000,
  // What one statement may answer, in memory; more is read in pages.
  readBytesMax: 67_108_864,
  // A page ends early here and can be gone on from: 500 documents of 1 MiB would be half a gigabyte.
  pageBytesMax: 4_194_304,
  // The WAL is cut back to this when it begins anew. Above it new reads wait until it has, and those are ended that have
  // kept it from that for so long.
  walBytesMax: 67_108_864,
  walHeldMs: 1000,
  // Prepared statements kept per connection. The product has fewer; the rest are the user's own texts.
  statementsCachedMax: 500,
  // A session is dead after this long without a beat. Longer than any delay seen under load, because the price of
  // being wrong is running a job twice.
  sessionTtlMs: 30_000,
  beatMs: 1000,
  pageDefault: 50,
  pageMax: 500,
  // Bulk commands work in slices of this size, so that one command never holds the writer for seconds.
  bulkRowsMax: 10_000,
  // Retention removes so many rows in one transaction, so that it holds up the other writers for some milliseconds only.
  pruneRowsMax: 1000,
  // Re-runs of a serialisable unit. After ten conflicts in a row the caller's own back-off will do better.
  conflictRetriesMax: 10,
  // Enough of an error to understand it; user code has been seen to put whole responses into messages.
  errorMessageBytesMax: 8192,
  errorTraceBytesMax: 16_384,
  priorityMax: 1000,
  // A longer list of backoffs is a formula; write it as one.
  backoffStepsMax: 100,
  // One transaction settles and claims about this many jobs: ten times fewer is 1.5–4 times slower, ten times more holds
  // the event loop for 7–25 ms.
  claimJobsMax: 100,
  // A claim looks into so many lanes, each by a seek, and parks at most so many jobs that it finds unable to run.
  claimLanesMax: 20,
  claimParkedMax: 300,
  // A reservation that its owner does not renew ends after this long; a queue must not stand still for ever.
  reservationMs: 600_000,
  reservationMsMax: 86_400_000,
  // Who removes an obstacle lets in the first of so many lanes; the sweep comes to the others.
  releaseLanesMax: 100,
  // A group's jobs are made in one transaction and ended in one when it is cancelled.
  groupJobsMax: 10_000,
  // A result is for whoever asked for the work; larger outcomes belong into records or files.
  resultBytesMax: 262_144,
  // A run with more steps is a loop over things, and each of those can be a job.
  stepsMax: 10_000,
  logLinesMax: 1000,
  logLineBytesMax: 8192,
  progressNoteBytesMax: 500,
  // Why somebody paused something, for whoever looks: a sentence or two.
  noteBytesMax: 2000,
  // Ended runs and lines of live listeners that wait to be written, in memory; more than these are counted instead.
  runQueueMax: 10_000,
  runLogQueueMax: 10_000,
  // They are written so many at once and so often: a transaction each would cost more than most handlers do.
  runBatchMax: 500,
  runFlushMs: 100,
  // Closing a book waits so long for them; whoever cannot write now is not to keep a process from ending.
  runDrainMs: 5000,
  // A fold adds ended runs to the rollups. It rests `foldMs`, or `foldRestFactor` times what the last fold took, but at most
  // `foldMsMax`. It takes at most `foldRunsMax` runs with `foldFailuresMax` failures that make `foldCountsMax` rows of counts, and
  // reads up to `foldHereMax` runs without asking another thread.
  foldMs: 1000,
  foldRestFactor: 20,
  foldMsMax: 5000,
  foldRunsMax: 50_000,
  foldCountsMax: 1000,
  foldFailuresMax: 5000,
  foldHereMax: 200,
  // Telemetry stays so long, and within about so many bytes: the runs of live listeners and what they logged are many, counts
  // of them are few. It leaves so many rows at a time, a few milliseconds of the writer's.
  runDays: 7,
  logDays: 3,
  rollupDays: 400,
  telemetryBytesMax: 1_073_741_824,
  retainRowsMax: 2000,
  // A line of more points than this is thicker than any screen.
  bucketsMax: 2000,
  // Live handlers of one listener at once, and events that wait for one that takes them in turn.
  liveConcurrency: 100,
  liveBacklog: 1000,
  // Topics whose last event is remembered, by the bus and by each listener that compares; the oldest is forgotten.
  liveTopicsMax: 10_000,
  // Published events are heard by their numbers. A number that was passed over is asked for again so long, so many at most:
  // longer than any transaction lasts.
  liveGapMs: 600_000,
  liveGapsMax: 1000,
  // How many of the latest events a listener that acts at once looks through for the last of its topics.
  liveLookBackMax: 10_000,
  // Events that were published for later, and are waited for in memory.
  liveDelayedMax: 10_000,
  // A live handler may take so long to end after its signal was aborted, before it is recorded as ended without it.
  liveGraceMs: 5000,
  // What is kept of a program's output; the rest is read and counted. Its end is also in the book, for looking at.
  commandLogBytesMax: 10_485_760,
  commandTailBytesMax: 4096,
  // The list of what a program made is part of its result; more than this belongs into a file of the program's own.
  commandArtifactsMax: 1000,
  commandArtifactsBytesMax: 131_072,
  // A schedule that was missed for longer is told how often, up to here.
  missedSlotsMax: 10_000,
  // What is caught up at most, and how much of it in one transaction: neither floods the queue.
  caughtUpSlotsMax: 1000,
  firesPerTickMax: 100,
  // Schedules that are fired in one transaction, and after how many slots the next one begins: many that are due every
  // second have many each.
  schedulesPerTickMax: 500,
  decisionsPerTickMax: 2000,
  // A longer stretch is filled in parts.
  backfillSlotsMax: 10_000,
  // All sixty minutes written out are 170 characters; a longer expression is generated by mistake or to do harm.
  cronBytesMax: 500,
  // The finest cron is one second too; each due time is a decision in the book, and finer loops belong into a job.
  everyMsMin: 1000,
  // What travels in a request is kept in the book until it is sent, and sealed in one piece.
  callBodyBytesMax: 1_048_576,
  callUrlBytesMax: 8192,
  callHeadersMax: 64,
  callHeaderBytesMax: 8192,
  // A webhook's answer is for looking at; whoever needs all of a large one fetches it in a job.
  callResponseBytesMax: 65_536,
  callResponseHeadersMax: 100,
  // Facts travel to every listener, so they carry the beginning of an answer only.
  callSnippetBytesMax: 1024,
  // Headers are held in memory while they arrive; honest servers need a tenth of this.
  callResponseHeaderBytesMax: 65_536,
  callTimeoutMs: 30_000,
  callTimeoutMsMax: 600_000,
  callRedirectsMax: 10,
  // What a server may ask us to wait before the next attempt.
  callRetryAfterMsMax: 3_600_000,
  // One tenant's calls that have not ended. More is a flood, and each of them is a promise.
  callsQueuedMax: 1_000_000,
  // Requests to one host at the same time, for each tenant: fewer than a worker's ten, so that a host that hangs leaves room.
  callsPerHost: 6,
  // A year 10000 does not fit ISO 8601 without a sign, and no call is due then.
  callDueMsMax: 253_402_300_799_999,
  // A setup registers and is done; one that waits for something that never comes must not keep the others from showing.
  appSetupMs: 30_000,
  // What an app does while it stops, and handlers of its schedules that still run, are waited for so long.
  appStopMs: 5000,
  appInstancesMax: 1000,
  // One setup that registers more is a loop that does not end.
  appRegistrationsMax: 10_000,
  // What a registration was given, and its source text, are kept for people to read.
  registrationJsonBytesMax: 16_384,
  registrationSourceBytesMax: 16_384,
  // A relation is found by both its endpoints and its instance, in one entry of an index.
  relationKeyBytesMax: 1500,
  // Why a commit was made: a sentence or two; documents belong into records.
  commitReasonBytesMax: 4096,
  // A commit is held in memory until it is written, and written in one statement on PostgreSQL.
  commitChangesMax: 10_000,
  // A field is at most as deep as a document may be.
  pathSegmentsMax: 64,
  // Each part of a condition is a part of a statement; more than a few are a list, which "in" takes as one.
  conditionsMax: 1000,
  conditionDepthMax: 16,
  // What all values of one question take together; a longer list belongs into a record or a table of its own.
  questionBytesMax: 1_048_576,
  // More fields to sort by than these are never told apart.
  ordersMax: 16,
  // People search for a few words; each is a list of postings to be crossed with the others.
  searchWordsMax: 32,
  searchCharactersMax: 4096,
  // Groups are held in memory and sorted there; more of them are a list of records, which has pages.
  groupsMax: 10_000,
  // Further out from one record, a traversal is a report over everything; do it in steps.
  traversalHopsMax: 10,
  traversalPathsMax: 10_000,
  // How often book.records.transact runs its function again after a conflict.
  transactRetriesMax: 3,
  // A hundred years: beyond it a duration is a mistake of units, and now + duration stays a date that can be written.
  durationMsMax: 3_155_760_000_000,
} as const;
