/**
 * Every limit of the product, with its reason. Going over one is a clear `invalid` error that names the limit, never
 * a cut-off value. Units come last in the names.
 */
export const limits = {
  // Parameters, results and record bodies travel through one writer; a bigger body belongs in a file or a bucket.
  jsonBytesMax: 1_048_576,
  // Deep enough for any real document, shallow enough that walking one by recursion cannot overflow the stack.
  jsonDepthMax: 64,
  // Fields, lists and objects of one document; plain values in lists are not counted. Twice as many take the event loop 50 ms to
  // check, sort and write, and somebody else's code that validates them as long again.
  jsonPartsMax: 50_000,
  // Keys are part of indexes; PostgreSQL refuses index entries above about 2700 bytes, tenant and name included.
  keyBytesMax: 512,
  // Names appear in indexes, URLs, logs and table headings.
  nameBytesMax: 200,
  // Indexes hold topics and people read them; values that vary without end belong in the payload or the key.
  topicBytesMax: 512,
  // A listener of more patterns than this needs a wildcard.
  listenerTopicsMax: 100,
  // Headers are for routing and tracing; content belongs in the payload.
  headersMax: 32,
  headersBytesMax: 8192,
  // A new listener catches up on past events in slices of this size, each in a transaction.
  catchUpEventsMax: 1000,
  // A replay of more than this is seldom meant; each is an event that every listener of its topic gets once more.
  replayEventsMax: 10_000,
  // No person reads a tree of more events than this; the first of them tell what it is about.
  lineageEventsMax: 1000,
  // Tags are for finding things by hand; each one is a row in an index.
  tagsMax: 32,
  tagBytesMax: 128,
  // A chain of runs that start runs ends here, so two listeners that feed each other stop instead of filling the disk.
  chainDepthMax: 20,
  // A group shares one fsync; more units gain little and make the first one wait for the last.
  groupUnitsMax: 256,
  // While several tenants wait, each gives a group so many, so that one that writes a lot holds up the others' commit only a little.
  groupTurnUnitsMax: 32,
  // A group stops taking units after this long, so that the event loop gets its turn.
  groupMsMax: 5,
  // A write unit that awaits something other than its transaction holds up every other writer.
  foreignAwaitMsMax: 1000,
  // How long we try to open a file that another process holds before we throw `busy`.
  busyMsMax: 5000,
  // Time servers set clocks back by no more than this, so after such a step we wait until the clock has caught up.
  clockSmoothMs: 1000,
  // After a larger step back, to a time that the clock never had, the clock is not believed for this long.
  clockHoldMs: 5000,
  // Clocks of two machines may differ by this much; a time further ahead comes from a wrong clock. Where a mistake can be undone, a
  // clock that was set is believed after this long.
  clockAheadMs: 60_000,
  // A clock that was set is believed after so long where a mistake cannot be made good. Until then only what is old by the old time
  // as well is removed for its age.
  clockSettleMs: 3_600_000,
  // A longer read is ended, because it keeps others waiting, the WAL from shrinking (SQLite) and vacuum from cleaning (PostgreSQL).
  // Reports, pages of exports and the engine's own reads may take `reportMs`.
  readMs: 5000,
  // A reader is a process: on a machine with ten programs for each processor it takes ten times as long to start.
  readerStartMs: 30_000,
  reportMs: 30_000,
  // Reads at once in all and of one tenant, so that another tenant need not wait. On SQLite each has a process.
  readsMax: 4,
  readsPerTenant: 2,
  // The same for reads of one moment (book.read), which last as long as the function that reads.
  snapshotsMax: 4,
  snapshotsPerTenant: 3,
  // One tenant's waiting reads; more would wait longer than any caller does.
  readsWaitingMax: 1000,
  // A read on SQLite that has had a processor for so long is slow, and lets all other processes come first.
  readYieldMs: 20,
  // After a slow read, so many quick ones of its tenant still let the others come first.
  readsPatient: 4,
  // A reader process that was idle for this long is ended, or earlier when all places are taken and another one is needed.
  readerIdleMs: 10_000,
  // The largest answer of one statement, held in memory; more is read in pages.
  readBytesMax: 67_108_864,
  // A page ends early here and the next one continues: 500 documents of 1 MiB would be half a gigabyte.
  pageBytesMax: 4_194_304,
  // An assistant reads every byte of an answer, and what it can keep in mind is small; more is asked for in pages.
  toolBytesMax: 65_536,
  // What happens is given to it in one answer: the first of it, of the next seconds.
  toolItemsMax: 100,
  toolStreamMs: 5000,
  // SQLite cuts the WAL back to this size when it starts over. Above this size new reads wait for that, and reads that have kept it
  // from starting over for `walHeldMs` are ended.
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
  // Where a number says how much there is at a glance, nobody needs it beyond this, and to count on takes longer the more there is.
  countedMax: 10_000,
  // Of each queue, so many deliveries tell how far behind its listeners are.
  deliveriesLookedAtMax: 1000,
  // What is named in an answer that tells how the book is; the rest is counted.
  healthNamesMax: 20,
  // A person who looks something up reads no more answers than this, and of ids that begin alike so many are looked at.
  foundMax: 20,
  foundLookedAtMax: 10_000,
  // A drawing of causes with more nodes than this is read by nobody, and no chain of causes that a person follows is longer.
  causesMax: 200,
  causesAboveMax: 100,
  // Bulk commands work in slices of this size, so that one command never holds the writer for seconds.
  bulkRowsMax: 10_000,
  // So many rows are written in one piece, for which the event loop is held a few milliseconds.
  sliceRowsMax: 500,
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
  // A claim looks into this many lanes, each by a seek, and parks at most this many jobs that cannot run.
  claimLanesMax: 20,
  claimParkedMax: 300,
  // A reservation that its owner does not renew ends after this long; a queue must not stand still for ever.
  reservationMs: 600_000,
  reservationMsMax: 86_400_000,
  // A remote worker says this often, at the least, that it still has a job: long enough for a request that was lost and sent again,
  // short enough that nobody waits for a worker that has died. One that cannot say so meanwhile asks for longer.
  leaseMs: 30_000,
  leaseMsMin: 1000,
  leaseMsMax: 3_600_000,
  // A lease that is over is kept for so long, so that a worker that comes late is told what became of its job.
  leaseKeptMs: 86_400_000,
  // What one request of a remote worker takes, and what one worker may hold.
  leasedJobsMax: 20,
  leasesHeldMax: 300,
  // Proxies end requests that are silent for longer.
  pollMsMax: 30_000,
  // A remote worker that holds nothing and is silent for so long is gone. It may be wrong about that at no cost: the worker attaches anew.
  remoteSilentMs: 120_000,
  // What a remote worker may run, by name: each costs a claim a seek.
  remoteNamesMax: 100,
  // A transaction that removes an obstacle releases the first job of this many lanes; the sweep releases the others.
  releaseLanesMax: 100,
  // A group's jobs are made in one transaction and ended in one when it is cancelled.
  groupJobsMax: 10_000,
  // A result is for the caller that asked for the work; larger outcomes belong in records or files.
  resultBytesMax: 262_144,
  // A run with more steps is a loop over things, each of which can be a job.
  stepsMax: 10_000,
  logLinesMax: 1000,
  logLineBytesMax: 8192,
  progressNoteBytesMax: 500,
  // Why an operator paused something: a sentence or two.
  noteBytesMax: 2000,
  // Ended runs and lines of live listeners that wait in memory to be written; more than these are only counted.
  runQueueMax: 10_000,
  runLogQueueMax: 10_000,
  // They are written in batches of this size and this often: a transaction each would cost more than most handlers do.
  runBatchMax: 500,
  runFlushMs: 100,
  // Closing a book waits this long for them; a book that cannot be written must not keep a process from ending.
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
  // How many days things stay when nobody says otherwise, and how many bytes the runs and lines of live listeners may take: these are
  // many, and counts of them are few. Retention removes `retainRowsMax` rows at a time, which takes the writer a few milliseconds,
  // and looks every `retainMs`, the first time `retainFirstMs` after a process began to work.
  runDays: 7,
  logDays: 3,
  jobDays: 30,
  callDays: 30,
  eventDays: 30,
  decisionDays: 90,
  rollupDays: 400,
  telemetryBytesMax: 1_073_741_824,
  retainRowsMax: 500,
  retainMs: 3_600_000,
  retainFirstMs: 60_000,
  // A chart of more points than this is wider than any screen.
  bucketsMax: 2000,
  // Handlers of one live listener at once, and events that wait for a listener that takes them one by one.
  liveConcurrency: 100,
  liveBacklog: 1000,
  // Topics whose last event the bus, and each listener that compares, remembers; the oldest is forgotten.
  liveTopicsMax: 10_000,
  // Live listeners follow published events by number. A missing number is asked for again for this long, which is longer than any
  // transaction lasts, and at most this many are.
  liveGapMs: 600_000,
  liveGapsMax: 1000,
  // How many of the latest events a listener that acts at once searches for the last one of its topics.
  liveLookBackMax: 10_000,
  // Delayed events that wait in memory.
  liveDelayedMax: 10_000,
  // How long a live handler may take to end after its signal was aborted, before its run is recorded without it.
  liveGraceMs: 5000,
  // How much of a program's output is kept; the rest is read and counted. The book holds the end of it.
  commandLogBytesMax: 10_485_760,
  commandTailBytesMax: 4096,
  // The list of a program's artifacts is part of its result; a longer list belongs in a file of its own.
  commandArtifactsMax: 1000,
  commandArtifactsBytesMax: 131_072,
  // Missed slots are counted up to here.
  missedSlotsMax: 10_000,
  // How many slots are caught up in all and in one transaction, so that they do not flood the queue.
  caughtUpSlotsMax: 1000,
  firesPerTickMax: 100,
  // Schedules that one transaction fires, and the decisions after which the next transaction begins, because a schedule that is due
  // every second may have many.
  schedulesPerTickMax: 500,
  decisionsPerTickMax: 2000,
  // A longer stretch is filled in parts.
  backfillSlotsMax: 10_000,
  // All sixty minutes written out are 170 characters; a longer expression is generated by mistake or to do harm.
  cronBytesMax: 500,
  // The finest cron is one second too; each due time is a decision in the book, and finer loops belong in a job.
  everyMsMin: 1000,
  // The book keeps a request until it is sent, sealed in one piece.
  callBodyBytesMax: 1_048_576,
  callUrlBytesMax: 8192,
  callHeadersMax: 64,
  callHeaderBytesMax: 8192,
  // A webhook's answer is for people to read; a program that needs all of a large one fetches it in a job.
  callResponseBytesMax: 65_536,
  // What is revealed of a call at once: its newest answers.
  callRevealedBytesMax: 8_388_608,
  // Headers are held in memory while they arrive; real servers need a tenth of this.
  callResponseHeaderBytesMax: 65_536,
  callTimeoutMs: 30_000,
  callTimeoutMsMax: 600_000,
  callRedirectsMax: 10,
  // The longest wait before the next attempt that a server may ask for.
  callRetryAfterMsMax: 3_600_000,
  // One tenant's calls that have not ended. More is a flood, and each of them is a promise.
  callsQueuedMax: 1_000_000,
  // Requests to one host at the same time, for each tenant: fewer than a worker's ten, so that a host that hangs leaves room.
  callsPerHost: 6,
  // A year 10000 does not fit ISO 8601 without a sign, and no call is due then.
  callDueMsMax: 253_402_300_799_999,
  // A setup registers and returns; one that waits for ever must not keep other apps from starting.
  appSetupMs: 30_000,
  // How long a stopping app, and the handlers of its schedules that still run, are waited for.
  appStopMs: 5000,
  appInstancesMax: 1000,
  // One setup that registers more is a loop that does not end.
  appRegistrationsMax: 10_000,
  // The options and the source text of a registration are kept for people to read.
  registrationJsonBytesMax: 16_384,
  registrationSourceBytesMax: 16_384,
  // A relation is found by both its endpoints and its instance, in one entry of an index.
  relationKeyBytesMax: 1500,
  // Why a commit was made: a sentence or two; documents belong in records.
  commitReasonBytesMax: 4096,
  // No tenant gets that far, so a larger number is a time: milliseconds of 1973 or later.
  commitsMax: 100_000_000_000,
  // A commit is held in memory until it is written, and written in one statement on PostgreSQL.
  commitChangesMax: 10_000,
  // A field is at most as deep as a document may be.
  pathSegmentsMax: 64,
  // Each part of a condition is a part of a statement; more than a few are a list, which "in" takes as one.
  conditionsMax: 1000,
  conditionDepthMax: 16,
  // The size of all values of one question; a longer list belongs in a record or a table of its own.
  questionBytesMax: 1_048_576,
  questionValuesMax: 50_000,
  // No query of a person sorts by more fields than this.
  ordersMax: 16,
  // People search for a few words; the engine intersects a list of matches for each.
  searchWordsMax: 32,
  searchCharactersMax: 4096,
  // A search begins with the records that fit one indexed condition when they are no more than this. To count that many takes a
  // millisecond, so it is done for a few conditions of a question.
  fewRecordsMax: 500,
  beginningsMax: 4,
  // What is read along with one entity; more of it is a list of its own, which has pages.
  relatedMax: 1000,
  // Groups are held in memory and sorted there; more of them are a list of records, which has pages.
  groupsMax: 10_000,
  // A traversal over more hops reads almost everything; do it in steps.
  traversalHopsMax: 10,
  traversalPathsMax: 10_000,
  // How often book.records.transact runs its function again after a conflict.
  transactRetriesMax: 3,
  // A one-time link is clicked at once; a login lasts a working week, one that no token vouches for a day.
  linkMs: 900_000,
  loginMs: 604_800_000,
  linkLoginMs: 86_400_000,
  // For how long a process believes what it last read of a token; that it was revoked elsewhere is mostly heard sooner.
  tokenMs: 1000,
  tokensCachedMax: 1000,
  // When a token was last used is known to this; each use would be a write.
  tokenUsedMs: 60_000,
  // What a worker token names; more is all.
  tokenNamesMax: 100,
  // Who did what is asked for months later; of what was given, the beginning tells what it was about.
  auditDays: 90,
  auditInputBytesMax: 4096,
  auditTextBytesMax: 500,
  auditItemsMax: 50,
  // How changes ended is written in batches, soon after; so many wait in memory while the book cannot be written.
  auditOutcomeMs: 250,
  auditOutcomesMax: 10_000,
  // A client tries a request again for minutes. A request that is under way for so long has been given up.
  replyMs: 86_400_000,
  replyBegunMs: 3_600_000,
  replyKeyBytesMax: 255,
  // Long operations are looked at for days; their progress is written about once a second.
  operationDays: 30,
  operationProgressMs: 1000,
  operationStopMs: 5000,
  // A hundred years: beyond it a duration is a mistake of units, and now + duration stays a date that can be written.
  durationMsMax: 3_155_760_000_000,
} as const;
