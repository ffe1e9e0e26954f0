-- The schema of a book on SQLite, as all migrations leave it.
-- Written by "npm run schema": do not edit.

pragma application_id = 1148805739;

pragma user_version = 13;

CREATE TABLE daybook_app_instance (
  seq integer primary key,
  tenant_id text not null,
  app_key text not null,
  instance_index integer not null check (instance_index >= 0),
  session_seq integer not null references daybook_session (seq),
  status text not null check (status in ('starting', 'running', 'failed', 'stopped')),
  error_type text,
  error_message text,
  error_trace text,
  error_at text,
  changed_at integer not null,
  unique (tenant_id, app_key, instance_index, session_seq),
  check ((status = 'failed') = (error_type is not null))
) strict;

CREATE TABLE daybook_audit (
  seq integer primary key,
  id text not null,
  -- Null: what was done is about all tenants.
  tenant_id text,
  noted_at integer not null,
  token_id text,
  caller text not null,
  role text not null check (role in ('read', 'operate', 'admin', 'worker')),
  verb text not null,
  subject text,
  input text,
  from_address text not null,
  request_id text not null,
  -- How it ended; null while nobody knows, and for ever when the process ended first.
  ended_at integer,
  status integer,
  code text,
  check ((ended_at is null) = (status is null)),
  check (code is null or status is not null)
) strict;

CREATE INDEX audit_of_tenant on daybook_audit (tenant_id, seq);

CREATE TABLE daybook_call (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text not null,
  status text not null,
  submitted_at integer not null,
  due_at integer not null,
  started_at integer,
  finished_at integer,
  method text not null check (method in ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')),
  host text not null,
  key_id text,
  kept text not null check (kept in ('sealed', 'clear', 'until_ended')),
  fingerprint text,
  request text not null,
  content text,
  policy text not null,
  outcome text,
  correlation_id text not null,
  idempotency_key text,
  send_key text not null,
  resend_of text,
  -- 1 when it tells of the end of a job or a group.
  notice integer not null check (notice in (0, 1)),
  unique (tenant_id, id),
  check (started_at >= submitted_at and started_at >= due_at),
  check (finished_at >= coalesce(started_at, submitted_at)),
  check ((finished_at is null) = (outcome is null)),
  check ((kept = 'sealed') = (key_id is not null)),
  check ((content is null) = (kept = 'until_ended' and finished_at is not null)),
  check (case status
    when 'scheduled' then started_at is null and finished_at is null
    when 'running' then started_at is not null and finished_at is null
    when 'cancelled' then finished_at is not null
    else status in ('succeeded', 'failed') and started_at is not null and finished_at is not null end)
) strict;

CREATE INDEX call_notices_open on daybook_call (tenant_id) where notice = 1 and finished_at is null;

CREATE INDEX calls_by_correlation on daybook_call (tenant_id, correlation_id, seq) where correlation_id <> id;

CREATE INDEX calls_of_tenant on daybook_call (tenant_id, status, seq);

CREATE UNIQUE INDEX calls_one_per_idempotency_key on daybook_call (tenant_id, idempotency_key)
where idempotency_key is not null;

CREATE TABLE daybook_call_attempt (
  tenant_id text not null,
  call_id text not null,
  id text not null,
  number integer not null check (number >= 1),
  started_at integer not null,
  finished_at integer,
  response_status integer,
  response_bytes integer,
  response_truncated integer not null default 0,
  key_id text,
  answer text,
  error_kind text,
  error_message text,
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real,
  primary key (tenant_id, call_id, id),
  foreign key (tenant_id, call_id) references daybook_call (tenant_id, id) on delete cascade,
  check (finished_at >= started_at),
  check (finished_at is not null or (response_status is null and error_kind is null and total_ms is null)),
  check (case when answer is null then key_id is null else response_status is not null end)
) strict;

CREATE UNIQUE INDEX call_attempts_one_open on daybook_call_attempt (tenant_id, call_id) where finished_at is null;

CREATE TABLE daybook_call_host (
  tenant_id text not null,
  host text not null,
  failures integer not null check (failures >= 0),
  opened_at integer,
  probe_at integer,
  probe_call_seq integer,
  primary key (tenant_id, host),
  check ((opened_at is null) = (probe_at is null)),
  check (probe_call_seq is null or probe_at is not null)
) strict;

CREATE INDEX call_hosts_back on daybook_call_host (tenant_id, host) where failures = 0;

CREATE INDEX call_hosts_to_probe on daybook_call_host (probe_at) where probe_at is not null;

CREATE TABLE daybook_call_tag (
  tenant_id text not null,
  call_id text not null,
  tag text not null,
  primary key (tenant_id, call_id, tag),
  foreign key (tenant_id, call_id) references daybook_call (tenant_id, id) on delete cascade
) strict;

CREATE INDEX calls_by_tag on daybook_call_tag (tenant_id, tag, call_id);

CREATE TABLE daybook_dead_letter (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  event_seq integer not null references daybook_event (seq),
  listener_seq integer not null references daybook_listener (seq),
  order_key text,
  job_id text not null,
  status text not null check (status in ('dead', 'redriving', 'recovered', 'discarded')),
  attempts integer not null check (attempts >= 1),
  error_type text not null,
  error_message text not null,
  first_failed_at integer not null,
  failed_at integer not null,
  redrives integer not null default 0,
  ended_at integer,
  reason text,
  unique (tenant_id, id),
  unique (tenant_id, event_seq, listener_seq),
  check ((status in ('recovered', 'discarded')) = (ended_at is not null))
) strict;

CREATE INDEX dead_letters_in_order on daybook_dead_letter (tenant_id, order_key, event_seq)
where ended_at is null and order_key is not null;

CREATE INDEX dead_letters_of_event on daybook_dead_letter (event_seq);

CREATE INDEX dead_letters_open on daybook_dead_letter (tenant_id, seq) where ended_at is null;

CREATE TABLE daybook_decision (
  seq integer primary key,
  tenant_id text not null,
  schedule_seq integer not null references daybook_schedule (seq),
  slot_at integer not null,
  until_at integer not null,
  slots integer not null check (slots >= 1),
  kind text not null check (kind in ('fired', 'late', 'caught_up', 'shifted_dst', 'backfilled', 'manual',
    'skipped_missed', 'skipped_overlap', 'skipped_paused')),
  decided_at integer not null,
  local text,
  job_id text,
  event_id text,
  note text,
  unique (tenant_id, schedule_seq, slot_at),
  check (until_at >= slot_at),
  check (job_id is null or event_id is null),
  check ((coalesce(job_id, event_id) is null) = (kind in ('skipped_missed', 'skipped_overlap', 'skipped_paused')))
) strict;

CREATE TABLE daybook_definition (
  name text not null primary key,
  queue text not null,
  priority integer not null check (priority between -1000 and 1000),
  attempts integer not null check (attempts >= 1),
  backoff text,
  timeout_ms integer check (timeout_ms > 0),
  losses integer not null check (losses >= 0),
  concurrency integer check (concurrency > 0),
  -- Limits that go by a key: the key is a function of the params, which only the program has.
  key_concurrency integer check (key_concurrency > 0),
  rate_max integer check (rate_max > 0),
  rate_ms integer check (rate_ms > 0),
  rate_by_key integer not null check (rate_by_key in (0, 1)),
  -- JSON Schema of what it takes, where its library offers one.
  params_schema text,
  -- Which webhook hears of which ends; its secrets are sealed.
  notify text,
  app text,
  instance integer,
  registration text,
  hosted_at integer not null,
  updated_at integer not null check (updated_at >= hosted_at),
  session_seq integer not null references daybook_session (seq),
  check ((rate_max is null) = (rate_ms is null))
) strict;

CREATE TABLE daybook_event (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  topic text not null,
  payload text not null,
  priority integer not null check (priority between -1000 and 1000),
  key text,
  dedupe_key text,
  dedupe_until integer,
  headers text,
  published_at integer not null,
  available_at integer not null,
  -- How long that is from its publishing on; null when a moment was given, or nothing.
  delay_ms integer,
  root_event_id text not null,
  parent_event_id text,
  -- One more than the limit of publishing: a dead letter is told even at the end of a chain.
  chain_depth integer not null check (chain_depth between 0 and 21),
  cause_run_id text,
  root_run_id text,
  replay_of text,
  deliveries integer not null check (deliveries >= 0),
  unique (tenant_id, id),
  check (available_at >= published_at),
  check (dedupe_until is null or dedupe_key is not null),
  check ((chain_depth = 0) = (root_event_id = id)),
  check ((chain_depth = 0) = (parent_event_id is null))
) strict;

CREATE INDEX events_caused on daybook_event (tenant_id, cause_run_id) where cause_run_id is not null;

CREATE INDEX events_in_order on daybook_event (tenant_id, seq);

CREATE INDEX events_of_chain on daybook_event (tenant_id, root_event_id, seq) where chain_depth > 0;

CREATE UNIQUE INDEX events_one_per_dedupe_key on daybook_event (tenant_id, dedupe_key) where dedupe_key is not null;

CREATE TABLE daybook_eviction (
  tenant_id text not null,
  day_at integer not null,
  what text not null check (what in ('decision', 'event', 'job', 'log', 'reservation', 'rollup', 'run')),
  reason text not null check (reason in ('age', 'size', 'count')),
  removed integer not null,
  -- When the oldest and the newest of what was removed were made, and when it was last removed.
  from_at integer not null,
  until_at integer not null,
  removed_at integer not null,
  primary key (tenant_id, day_at, what, reason)
) strict;

CREATE TABLE daybook_job (
  seq integer primary key,
  tenant_id text not null,
  id text not null unique,
  lane_seq integer not null,
  name text not null,
  priority integer not null check (priority between -1000 and 1000),
  created_at integer not null,
  -- When it was to run, if that was not at once.
  due_at integer,
  -- How long it was to wait from its creation on; null when a moment was given instead.
  delay_ms integer,
  params text not null,
  attempts integer not null check (attempts >= 1),
  losses_max integer not null,
  timeout_ms integer check (timeout_ms > 0),
  backoff text,
  origin text not null default 'enqueued' check (origin in ('enqueued', 'retry', 'manual', 'direct')),
  attempt integer not null default 1 check (attempt >= 1),
  losses integer not null default 0 check (losses >= 0 and losses <= losses_max),
  -- How often it was lost among others: 0, 1, or 2 when it must run alone.
  alone integer not null default 0 check (alone between 0 and 2),
  retry_of integer,
  -- The first job of a chain of retries; null on the first itself.
  chain_seq integer,
  key text,
  key_scope text check (key_scope in ('queued', 'done', 'window')),
  idempotency_key text,
  limits text,
  limit_key text,
  tags text,
  template_id text,
  group_seq integer,
  group_slot integer,
  -- Whose job it is, when a room above made it: that room hears of its end, and tells its handler more about it.
  kind text,
  kind_seq integer,
  about text,
  cause_run_id text,
  root_run_id text,
  app text,
  instance integer,
  registration text,
  traceparent text,
  -- Its end, when it was cancelled before it ran. Every other end is its run's.
  cancelled_at integer,
  check ((key is null) = (key_scope is null))
) strict;

CREATE UNIQUE INDEX deliveries_one_chain on daybook_job (tenant_id, kind_seq, name)
where kind = 'delivery' and retry_of is null;

CREATE INDEX jobs_caused on daybook_job (tenant_id, cause_run_id)
where cause_run_id is not null and retry_of is null and kind is distinct from 'delivery';

CREATE INDEX jobs_of_group on daybook_job (group_seq, group_slot, seq) where group_seq is not null;

CREATE UNIQUE INDEX jobs_one_per_idempotency_key on daybook_job (tenant_id, idempotency_key)
where idempotency_key is not null;

CREATE UNIQUE INDEX jobs_one_retry on daybook_job (retry_of) where retry_of is not null;

CREATE TABLE daybook_job_group (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text,
  mode text not null check (mode in ('sequential', 'parallel')),
  on_failure text not null check (on_failure in ('stop', 'continue', 'skip')),
  status text not null default 'open' check (status in ('open', 'completed', 'failed', 'partial', 'cancelled')),
  slots integer not null check (slots >= 0),
  notify text,
  created_at integer not null,
  cancel_requested_at integer,
  stopped_at integer,
  finished_at integer,
  unique (tenant_id, id),
  check ((status = 'open') = (finished_at is null))
) strict;

CREATE TABLE daybook_job_key (
  tenant_id text not null,
  name text not null,
  key text not null,
  job_seq integer not null,
  until_at integer,
  primary key (tenant_id, name, key)
) strict;

CREATE INDEX job_keys_of_job on daybook_job_key (job_seq);

CREATE TABLE daybook_job_pin (
  job_seq integer primary key
) strict;

CREATE TABLE daybook_job_step (
  tenant_id text not null,
  chain_seq integer not null,
  place integer not null,
  name text not null,
  result text,
  run_id text not null,
  done_at integer not null,
  primary key (tenant_id, chain_seq, place)
) strict;

CREATE INDEX job_steps_of_job on daybook_job_step (chain_seq);

CREATE TABLE daybook_job_template (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text not null,
  job_name text not null,
  params text not null,
  queue text,
  priority integer check (priority between -1000 and 1000),
  attempts integer check (attempts >= 1),
  backoff text,
  timeout_ms integer check (timeout_ms > 0),
  losses integer check (losses >= 0),
  notify text,
  created_at integer not null,
  updated_at integer not null,
  archived_at integer,
  revision integer not null default 1,
  unique (tenant_id, id),
  unique (tenant_id, name)
) strict;

CREATE TABLE daybook_lane (
  seq integer primary key,
  tenant_id text not null,
  queue text not null,
  paused_at integer,
  paused_note text,
  limit_max integer check (limit_max > 0),
  rate_max integer check (rate_max > 0),
  rate_ms integer check (rate_ms > 0),
  unique (tenant_id, queue),
  check ((rate_max is null) = (rate_ms is null))
) strict;

CREATE TABLE daybook_lease (
  seq integer primary key,
  tenant_id text not null,
  token_hash text not null,
  run_id text not null,
  job_seq integer not null,
  session_seq integer not null references daybook_session (seq),
  lasts_ms integer not null check (lasts_ms > 0),
  renewed_at integer not null,
  expires_at integer not null,
  -- How many lines the worker has written into the log of its run.
  lines integer not null default 0,
  closed_at integer,
  closed_as text check (closed_as in ('settled', 'failed', 'returned', 'lost', 'ended')),
  unique (tenant_id, token_hash),
  unique (tenant_id, run_id),
  check ((closed_at is null) = (closed_as is null))
) strict;

CREATE INDEX leases_of_session on daybook_lease (session_seq) where closed_at is null;

CREATE INDEX leases_to_expire on daybook_lease (expires_at, seq) where closed_at is null;

CREATE INDEX leases_to_remove on daybook_lease (closed_at) where closed_at is not null;

CREATE TABLE daybook_line (
  seq integer primary key,
  lane_seq integer not null,
  status text not null,
  waits_for text check (waits_for in
    ('time', 'key', 'host', 'group', 'reservation', 'order', 'alone', 'release', 'event', 'job', 'answer')),
  waits_key text,
  priority integer not null check (priority between -1000 and 1000),
  position integer not null,
  available_at integer not null,
  -- What its end concerns besides itself, as bits (state.ts); 0 for most.
  ties integer not null,
  kind text,
  kind_seq integer,
  order_key text,
  group_seq integer,
  group_slot integer,
  run_id text,
  session_seq integer,
  started_at integer,
  timeout_at integer,
  cancel_requested_at integer,
  -- Somebody waits for the end, so whoever ends it says so.
  awaited integer not null default 0,
  progress real,
  progress_note text,
  -- One case per status, because every insert and update pays for what is evaluated here.
  check (case status
    when 'queued' then waits_for is null and started_at is null and run_id is null
    when 'running' then waits_for is null and started_at is not null and run_id is not null and session_seq is not null
    when 'waiting' then waits_for is not null and started_at is null and run_id is null
    else false end)
) strict;

CREATE INDEX jobs_due on daybook_line (available_at)
where status = 'waiting' and waits_for = 'time' and waits_key is null;

CREATE INDEX jobs_open_by_kind on daybook_line (kind, kind_seq, seq) where kind is not null;

CREATE INDEX jobs_open_in_group on daybook_line (group_seq, group_slot) where group_seq is not null;

CREATE INDEX jobs_open_in_order on daybook_line (order_key, kind_seq) where order_key is not null;

CREATE INDEX jobs_running on daybook_line (lane_seq, session_seq) where status = 'running';

CREATE INDEX jobs_standing_by on daybook_line (lane_seq, priority desc, position) where status = 'waiting';

CREATE INDEX jobs_timing_out on daybook_line (timeout_at) where status = 'running' and timeout_at is not null;

CREATE INDEX jobs_to_claim on daybook_line (lane_seq, priority desc, position, seq) where status = 'queued';

CREATE INDEX jobs_waiting on daybook_line (waits_for, waits_key, lane_seq, priority desc, position, seq)
where status = 'waiting' and waits_key is not null;

CREATE TABLE daybook_listener (
  seq integer primary key,
  tenant_id text not null,
  name text not null,
  topics text not null,
  predicate text,
  queue text not null,
  ordered integer not null check (ordered in (0, 1)),
  attempts integer not null check (attempts >= 1),
  backoff text,
  timeout_ms integer check (timeout_ms > 0),
  losses integer not null check (losses >= 0),
  concurrency integer check (concurrency >= 1),
  starts_from text not null check (starts_from in ('now', 'beginning', 'time', 'event')),
  starts_at integer,
  starts_seq integer not null,
  state text not null check (state in ('live', 'catching_up', 'removed')),
  heard_seq integer not null,
  heard_to integer,
  -- 1: one of each tenant; that of the tenant '*' is for who is to come.
  for_all integer not null check (for_all in (0, 1)),
  registered_at integer not null,
  updated_at integer not null,
  removed_at integer,
  unique (tenant_id, name),
  check ((state = 'removed') = (removed_at is not null)),
  check ((state = 'catching_up') = (heard_to is not null))
) strict;

CREATE TABLE daybook_listener_change (
  one integer primary key check (one = 1),
  stamp text not null
) strict;

CREATE TABLE daybook_login (
  hash text primary key,
  kind text not null check (kind in ('link', 'login')),
  token_seq integer references daybook_token (seq) on delete cascade,
  tenant_id text,
  role text not null check (role in ('read', 'operate', 'admin', 'worker')),
  created_at integer not null,
  expires_at integer not null,
  check (kind = 'login' or token_seq is null),
  check (expires_at > created_at)
) strict, without rowid;

CREATE INDEX logins_of_token on daybook_login (token_seq) where token_seq is not null;

CREATE TABLE daybook_migration (
  number integer primary key,
  name text not null,
  hash text not null,
  applied_at integer not null
) strict;

CREATE TABLE daybook_operation (
  seq integer primary key,
  id text not null,
  -- Null: it is about all tenants.
  tenant_id text,
  verb text not null,
  token_id text,
  caller text,
  input text,
  session_seq integer,
  status text not null default 'running' check (status in ('running', 'completed', 'failed', 'cancelled', 'lost')),
  done integer not null default 0 check (done >= 0),
  total integer check (total >= 0),
  started_at integer not null,
  updated_at integer not null,
  cancel_requested_at integer,
  finished_at integer,
  result text,
  -- Why what it answered was not kept.
  result_refused text,
  error_code text,
  error_message text,
  check ((status = 'running') = (finished_at is null)),
  -- What a cancelled one has done until then is kept too.
  check (result is null or status in ('completed', 'cancelled')),
  check ((status = 'failed') = (error_code is not null)),
  check ((error_code is null) = (error_message is null))
) strict;

CREATE UNIQUE INDEX operations_by_id on daybook_operation (id);

CREATE INDEX operations_of_tenant on daybook_operation (tenant_id, seq);

CREATE INDEX operations_open on daybook_operation (session_seq) where status = 'running';

CREATE TABLE daybook_paused_name (
  tenant_id text not null,
  name text not null,
  paused_at integer not null,
  note text,
  primary key (tenant_id, name)
) strict;

CREATE TABLE daybook_permit (
  tenant_id text not null,
  limit_key text not null,
  number integer not null,
  job_seq integer not null,
  primary key (tenant_id, limit_key, number)
) strict;

CREATE INDEX permits_of_job on daybook_permit (job_seq);

CREATE TABLE daybook_place (
  id integer primary key check (id = 1),
  place text not null
) strict;

CREATE TABLE daybook_rate_window (
  tenant_id text not null,
  rate_key text not null,
  window_at integer not null,
  used integer not null,
  let_in integer not null,
  opens_at integer,
  primary key (tenant_id, rate_key)
) strict;

CREATE INDEX rates_to_open on daybook_rate_window (opens_at) where opens_at is not null;

CREATE TABLE daybook_record (seq integer primary key,
tenant_id text not null,
type_seq integer not null references daybook_record_type (seq),
key text not null,
from_type_seq integer references daybook_record_type (seq),
from_key text,
to_type_seq integer references daybook_record_type (seq),
to_key text,
instance_key text,
revision integer not null check (revision >= 1),
schema_version integer not null,
from_commit integer not null, body text not null,
      unique (type_seq, tenant_id, key),
check (from_key is null and to_key is null and instance_key is null and from_type_seq is null and to_type_seq is null
  or from_key is not null and to_key is not null and instance_key is not null and from_type_seq is not null and to_type_seq is not null)) strict;

CREATE INDEX relations_from on daybook_record (tenant_id, from_type_seq, from_key, type_seq) where from_key is not null;

CREATE INDEX relations_to on daybook_record (tenant_id, to_type_seq, to_key, type_seq) where to_key is not null;

CREATE TABLE daybook_record_change (
  tenant_id text not null,
  commit_id integer not null,
  position integer not null,
  type_seq integer not null references daybook_record_type (seq),
  key text not null,
  kind text not null check (kind in ('created', 'updated', 'deleted')),
  revision integer not null,
  primary key (tenant_id, commit_id, position),
  foreign key (tenant_id, commit_id) references daybook_record_commit (tenant_id, id)
) strict, without rowid;

CREATE TABLE daybook_record_commit (
  tenant_id text not null,
  id integer not null check (id >= 1),
  committed_at integer not null,
  -- The first commit since the clock was last set back: from it on, times do not go back.
  clock_from integer not null check (clock_from <= id),
  changes integer not null check (changes >= 1),
  actor text,
  reason text,
  metadata text not null,
  run_id text,
  root_run_id text,
  primary key (tenant_id, id)
) strict, without rowid;

CREATE INDEX commits_by_actor on daybook_record_commit (tenant_id, actor, id) where actor is not null;

CREATE INDEX commits_by_time on daybook_record_commit (tenant_id, clock_from, committed_at, id);

CREATE INDEX commits_caused on daybook_record_commit (tenant_id, run_id) where run_id is not null;

CREATE TABLE daybook_record_commit_type (
  tenant_id text not null,
  type_seq integer not null references daybook_record_type (seq),
  commit_id integer not null,
  primary key (tenant_id, type_seq, commit_id),
  foreign key (tenant_id, commit_id) references daybook_record_commit (tenant_id, id)
) strict, without rowid;

CREATE TABLE daybook_record_head (
  tenant_id text not null primary key,
  commit_id integer not null check (commit_id >= 0),
  committed_at integer not null,
  clock_from integer not null
) strict, without rowid;

CREATE TABLE daybook_record_schema (
  seq integer primary key,
  tenant_id text not null,
  type_seq integer not null references daybook_record_type (seq),
  version integer not null check (version >= 1),
  schema text not null,
  hash text not null,
  reason text not null,
  created_at integer not null,
  unique (tenant_id, type_seq, version),
  unique (tenant_id, type_seq, hash),
  check ((version = 1) = (reason = 'initial'))
) strict;

CREATE TABLE daybook_record_type (
  seq integer primary key,
  tenant_id text not null,
  kind text not null check (kind in ('entity', 'relation')),
  name text not null,
  from_type_seq integer references daybook_record_type (seq),
  to_type_seq integer references daybook_record_type (seq),
  created_at integer not null,
  unique (tenant_id, name),
  check ((kind = 'relation') = (from_type_seq is not null)),
  check ((kind = 'relation') = (to_type_seq is not null))
) strict;

CREATE TABLE daybook_record_version (seq integer primary key,
tenant_id text not null,
type_seq integer not null references daybook_record_type (seq),
key text not null,
from_type_seq integer references daybook_record_type (seq),
from_key text,
to_type_seq integer references daybook_record_type (seq),
to_key text,
instance_key text,
revision integer not null check (revision >= 1),
schema_version integer not null,
from_commit integer not null,
      to_commit integer not null,
      ended text not null check (ended in ('replaced', 'deleted')),
      body text not null,
      unique (tenant_id, type_seq, key, from_commit),
      check (to_commit > from_commit),
check (from_key is null and to_key is null and instance_key is null and from_type_seq is null and to_type_seq is null
  or from_key is not null and to_key is not null and instance_key is not null and from_type_seq is not null and to_type_seq is not null)) strict;

CREATE INDEX versions_closed on daybook_record_version (tenant_id, type_seq, to_commit);

CREATE INDEX versions_from on daybook_record_version (tenant_id, from_type_seq, from_key, to_commit) where from_key is not null;

CREATE INDEX versions_to on daybook_record_version (tenant_id, to_type_seq, to_key, to_commit) where to_key is not null;

CREATE TABLE daybook_registration (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  app_key text not null,
  instance_index integer not null check (instance_index >= 0),
  name text not null,
  kind text not null check (kind in ('listener', 'schedule', 'job')),
  handler_method text not null,
  topic text,
  debounce_ms integer,
  throttle_ms integer,
  once integer not null check (once in (0, 1)),
  priority integer not null,
  predicate text,
  trigger_type text check (trigger_type in ('cron', 'interval')),
  trigger_value text,
  repeat integer not null check (repeat in (0, 1)),
  args text not null,
  kwargs text not null,
  settings text not null,
  source_location text not null,
  registration_source text,
  first_registered_at integer not null,
  last_registered_at integer not null,
  retired_at integer,
  unique (tenant_id, id),
  unique (tenant_id, app_key, instance_index, name),
  check ((kind = 'listener') = (topic is not null)),
  check ((kind = 'schedule') = (trigger_value is not null)),
  check (last_registered_at >= first_registered_at)
) strict;

CREATE TABLE daybook_reply (
  tenant_id text not null,
  token_id text not null,
  key text not null,
  -- Of the request that has the key: another one gets it when the first was given up.
  id text not null,
  route text not null,
  body_hash text not null,
  session_seq integer,
  begun_at integer not null,
  finished_at integer,
  status integer,
  headers text,
  body text,
  primary key (tenant_id, token_id, key),
  check ((finished_at is null) = (status is null)),
  check ((finished_at is null) = (headers is null)),
  check ((finished_at is null) = (body is null))
) strict;

CREATE INDEX replies_to_leave on daybook_reply (begun_at);

CREATE TABLE daybook_reservation (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  lane_seq integer not null,
  session_seq integer not null references daybook_session (seq),
  note text,
  -- The direct work that it was made for; null when somebody holds the queue by hand.
  job_id text,
  reserved_at integer not null,
  expires_at integer not null,
  -- How long it lasts when it is made, and from each time that it is renewed.
  lasts_ms integer not null check (lasts_ms > 0),
  ended_at integer,
  status text not null default 'active' check (status in ('active', 'released', 'expired')),
  unique (tenant_id, id),
  check ((status = 'active') = (ended_at is null))
) strict;

CREATE INDEX reservations_of_session on daybook_reservation (session_seq) where status = 'active';

CREATE UNIQUE INDEX reservations_one_per_lane on daybook_reservation (lane_seq) where status = 'active';

CREATE TABLE daybook_retention (
  one integer primary key check (one = 1),
  policy text not null,
  applied_at integer
) strict;

CREATE TABLE daybook_run (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  kind text not null,
  name text not null,
  -- The job that it was an execution of; null for a live listener's. No foreign keys: see decision 019.
  job_seq integer,
  session_seq integer,
  attempt integer not null,
  started_at integer not null,
  ended_at integer not null,
  duration_ms real not null check (duration_ms >= 0),
  status text not null check (status in ('success', 'error', 'cancelled', 'timed_out', 'skipped', 'lost')),
  error_type text,
  error_message text,
  error_trace text,
  result text,
  -- Why what the handler returned was not kept.
  result_refused text,
  cause_run_id text,
  root_run_id text,
  -- A live listener's run belongs to no job: what it heard stands with it. No index is added: such runs are many.
  event_id text,
  topic text,
  -- Whose run it is: the app, its instance and the name under which it registered the listener or schedule. Names, not
  -- numbers: history follows them across restarts. A job that an app made hands them on to its run.
  app text,
  instance integer,
  registration text
) strict;

CREATE UNIQUE INDEX runs_by_id on daybook_run (id);

CREATE UNIQUE INDEX runs_one_per_job on daybook_run (job_seq) where job_seq is not null;

CREATE INDEX runs_registered on daybook_run (tenant_id, (coalesce(registration, name)), seq)
where job_seq is null or registration is not null;

CREATE INDEX runs_unlike_success on daybook_run (tenant_id, status, seq) where status <> 'success';

CREATE TRIGGER daybook_run_never_changes before update on daybook_run begin select raise(abort, 'an ended run never changes'); end;

CREATE TABLE daybook_run_command (
  tenant_id text not null,
  run_id text not null,
  job_id text not null,
  argv text not null,
  host text not null,
  host_boot text,
  host_namespace text,
  pid integer,
  process_started text,
  started_at integer not null,
  ended_at integer,
  exit_code integer,
  signal text,
  log_path text,
  log_bytes integer,
  log_truncated integer not null default 0,
  log_tail text,
  artifacts text not null default '[]',
  artifacts_left_out integer not null default 0,
  note text,
  primary key (tenant_id, run_id)
) strict;

CREATE INDEX run_commands_open on daybook_run_command (host, started_at) where ended_at is null;

CREATE TABLE daybook_run_failure (
  series_seq integer not null references daybook_run_series (seq),
  at integer not null,
  fingerprint text not null,
  runs integer not null,
  first_at integer not null,
  last_at integer not null,
  last_seq integer not null,
  last_run_id text not null,
  last_status text not null,
  error_type text not null,
  error_message text not null,
  primary key (series_seq, at, fingerprint)
) strict, without rowid;

CREATE INDEX run_failures_by_last on daybook_run_failure (series_seq, last_seq);

CREATE TABLE daybook_run_fold (
  one integer primary key check (one = 1),
  folded_seq integer not null
) strict;

CREATE TABLE daybook_run_log (
  seq integer primary key,
  tenant_id text not null,
  run_id text not null,
  logged_at integer not null,
  level text not null check (level in ('debug', 'info', 'warn', 'error')),
  message text not null,
  fields text
) strict;

CREATE INDEX run_logs_of_run on daybook_run_log (tenant_id, run_id, seq);

CREATE TABLE daybook_run_pin (
  tenant_id text not null,
  run_id text not null,
  pinned_at integer not null,
  note text,
  primary key (tenant_id, run_id)
) strict;

CREATE TABLE daybook_run_rollup (
  series_seq integer not null references daybook_run_series (seq),
  span text not null check (span in ('minute', 'hour', 'day', 'session', 'ever')),
  at integer not null,
  first_seq integer not null,
  last_seq integer not null,
  runs integer not null,
  success integer not null,
  error integer not null,
  cancelled integer not null,
  timed_out integer not null,
  skipped integer not null,
  lost integer not null,
  sum_ms real not null,
  max_ms real not null,
  took_0 integer not null, took_1 integer not null, took_2 integer not null, took_3 integer not null, took_4 integer not null, took_5 integer not null, took_6 integer not null, took_7 integer not null, took_8 integer not null, took_9 integer not null, took_10 integer not null, took_11 integer not null, took_12 integer not null, took_13 integer not null, took_14 integer not null, took_15 integer not null, took_16 integer not null, took_17 integer not null, took_18 integer not null, took_19 integer not null, took_20 integer not null, took_21 integer not null, took_22 integer not null, took_23 integer not null,
  primary key (series_seq, span, at),
  check (runs = success + error + cancelled + timed_out + skipped + lost)
) strict, without rowid;

CREATE TABLE daybook_run_series (
  seq integer primary key,
  tenant_id text not null,
  kind text not null,
  name text not null,
  app text not null,
  instance integer not null,
  -- The lines of its runs up to this one have left by retention.
  logs_gone_seq integer not null default 0,
  unique (tenant_id, kind, name, app, instance)
) strict;

CREATE TABLE daybook_schedule (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text not null,
  source text not null check (source in ('code', 'api')),
  -- It is one of those that a definition in code gives to every tenant.
  for_all integer not null default 0 check (for_all in (0, 1)),
  kind text not null check (kind in ('cron', 'every', 'once', 'daily')),
  expression text not null,
  zone text not null,
  gap text not null check (gap in ('shift', 'skip')),
  ambiguous text not null check (ambiguous in ('first', 'last', 'both')),
  starts_at integer,
  ends_at integer,
  anchor_at integer,
  target text not null check (target in ('job', 'template', 'event')),
  target_name text not null,
  job text not null,
  missed text not null check (missed in ('latest', 'all', 'skip')),
  max_lateness_ms integer check (max_lateness_ms >= 0),
  overlap text not null check (overlap in ('skip', 'queue', 'cancel', 'allow')),
  jitter_ms integer not null check (jitter_ms >= 0),
  max_fires integer check (max_fires > 0),
  pause_after integer check (pause_after > 0),
  fires integer not null default 0,
  failures integer not null default 0,
  cursor_at integer not null,
  next_at integer,
  -- Slots up to here may have been fired by a clock that ran ahead.
  ahead_until integer,
  last_fired_at integer,
  paused_at integer,
  paused_note text,
  removed_at integer,
  held integer not null default 0,
  -- The decisions about slots up to here have left by retention.
  pruned_until integer,
  revision integer not null default 1,
  created_at integer not null,
  updated_at integer not null,
  unique (tenant_id, id),
  -- A name that was removed keeps its row: whoever makes it again cannot fire a slot that was fired before.
  unique (tenant_id, name),
  check (next_at is null or (paused_at is null and removed_at is null))
) strict;

CREATE INDEX schedules_due on daybook_schedule (next_at) where next_at is not null;

CREATE INDEX schedules_held on daybook_schedule (seq) where held = 1;

CREATE TABLE daybook_schedule_zone (
  one integer primary key check (one = 1),
  zone text not null,
  changed_at integer not null
) strict;

CREATE TABLE daybook_session (
  seq integer primary key,
  id text not null unique,
  host text not null,
  host_boot text,
  host_namespace text,
  pid integer not null,
  process_started text,
  started_at integer not null,
  beat integer not null default 0,
  last_heartbeat_at integer not null,
  stopped_at integer,
  status text not null default 'running' check (status in ('running', 'success', 'error', 'unknown')),
  error_type text,
  error_message text,
  error_trace text,
  metadata text not null default '{}',
  -- What it could not keep or do, so that nobody takes silence for peace.
  dropped_runs integer not null default 0,
  dropped_logs integer not null default 0,
  dropped_events integer not null default 0, kind text not null default 'process' check (kind in ('process', 'remote')), tenant_id text, token_id text,
  check ((status = 'running') = (stopped_at is null)),
  check ((status = 'error') = (error_type is not null)),
  check (last_heartbeat_at >= started_at)
) strict;

CREATE INDEX sessions_running on daybook_session (seq) where status = 'running';

CREATE TABLE daybook_session_host (
  session_seq integer not null references daybook_session (seq),
  name text not null,
  primary key (session_seq, name)
) strict;

CREATE TABLE daybook_session_queue (
  session_seq integer not null references daybook_session (seq),
  queue text
) strict;

CREATE UNIQUE INDEX session_queues_once on daybook_session_queue (session_seq, coalesce(queue, ''));

CREATE TABLE daybook_token (
  seq integer primary key,
  id text not null unique,
  hash text not null,
  name text not null,
  -- Null: it is of the whole book.
  tenant_id text,
  role text not null check (role in ('read', 'operate', 'admin', 'worker')),
  -- What a worker may take: lists as JSON; null means all.
  queues text,
  names text,
  created_at integer not null,
  expires_at integer,
  last_used_at integer,
  revoked_at integer,
  check (role = 'worker' or (queues is null and names is null)),
  check (expires_at > created_at),
  check (revoked_at >= created_at)
) strict;

CREATE VIEW daybook_job_now as select job.seq, job.tenant_id, job.id, job.lane_seq, job.name, case when line.seq is not null then line.status
when job.cancelled_at is not null or run.status = 'cancelled' then 'cancelled'
when run.status = 'success' then 'completed' when run.status = 'skipped' then 'skipped' else 'failed' end as status,
  line.waits_for, line.waits_key, coalesce(line.priority, job.priority) as priority, line.position, job.created_at,
  coalesce(line.available_at, job.due_at, job.created_at) as available_at, job.params, job.origin, job.attempt, job.attempts, job.losses, job.losses_max, job.backoff,
  job.timeout_ms, job.retry_of, job.alone, job.key, job.key_scope, job.idempotency_key, job.limits, job.limit_key,
  job.tags, job.cause_run_id, job.root_run_id, coalesce(line.run_id, run.id) as run_id, line.session_seq,
  line.started_at, line.timeout_at, line.cancel_requested_at, line.progress, line.progress_note,
  case when line.seq is null then coalesce(run.ended_at, job.cancelled_at) end as finished_at, job.template_id,
  job.group_seq, job.group_slot, job.chain_seq, job.kind, job.kind_seq, job.about, coalesce(line.awaited, 0) as awaited,
  job.app, job.instance, job.registration, job.traceparent
from daybook_job job left join daybook_line line on line.seq = job.seq
left join daybook_run run on run.job_seq = job.seq;
