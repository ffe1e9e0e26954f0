-- The schema of a book on SQLite, as all migrations leave it.
-- Written by "npm run schema": do not edit.

pragma application_id = 1148805739;

pragma user_version = 11;

CREATE TABLE app_instance (
  seq integer primary key,
  tenant_id text not null,
  app_key text not null,
  instance_index integer not null check (instance_index >= 0),
  session_seq integer not null references session (seq),
  status text not null check (status in ('starting', 'running', 'failed', 'stopped')),
  error_type text,
  error_message text,
  error_trace text,
  changed_at integer not null,
  unique (tenant_id, app_key, instance_index),
  check ((status = 'failed') = (error_type is not null))
) strict;

CREATE TABLE call (
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
  request text not null,
  content text not null,
  key_id text,
  policy text not null,
  outcome text,
  correlation_id text not null,
  idempotency_key text,
  send_key text not null,
  resend_of text,
  unique (tenant_id, id),
  check (started_at >= submitted_at and started_at >= due_at),
  check (finished_at >= coalesce(started_at, submitted_at)),
  check ((finished_at is null) = (outcome is null)),
  check (case status
    when 'scheduled' then started_at is null and finished_at is null
    when 'running' then started_at is not null and finished_at is null
    when 'cancelled' then finished_at is not null
    else status in ('succeeded', 'failed') and started_at is not null and finished_at is not null end)
) strict;

CREATE INDEX calls_by_correlation on call (tenant_id, correlation_id, seq) where correlation_id <> id;

CREATE INDEX calls_of_tenant on call (tenant_id, status, seq);

CREATE UNIQUE INDEX calls_one_per_idempotency_key on call (tenant_id, idempotency_key)
where idempotency_key is not null;

CREATE TABLE call_attempt (
  tenant_id text not null,
  call_id text not null,
  id text not null,
  number integer not null check (number >= 1),
  started_at integer not null,
  finished_at integer,
  method text not null check (method in ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')),
  url text not null,
  request_headers text not null,
  request_body text,
  response_status integer,
  response_headers text,
  response_body text,
  response_base64 integer not null default 0,
  response_bytes integer,
  response_truncated integer not null default 0,
  hops text,
  error_kind text,
  error_message text,
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real,
  primary key (tenant_id, call_id, id),
  foreign key (tenant_id, call_id) references call (tenant_id, id) on delete cascade,
  check (finished_at >= started_at),
  check (finished_at is not null or (response_status is null and error_kind is null and total_ms is null))
) strict;

CREATE UNIQUE INDEX call_attempts_one_open on call_attempt (tenant_id, call_id) where finished_at is null;

CREATE TABLE call_host (
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

CREATE INDEX call_hosts_back on call_host (tenant_id, host) where failures = 0;

CREATE INDEX call_hosts_to_probe on call_host (probe_at) where probe_at is not null;

CREATE TABLE call_tag (
  tenant_id text not null,
  call_id text not null,
  tag text not null,
  primary key (tenant_id, call_id, tag),
  foreign key (tenant_id, call_id) references call (tenant_id, id) on delete cascade
) strict;

CREATE INDEX calls_by_tag on call_tag (tenant_id, tag, call_id);

CREATE TABLE dead_letter (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  event_seq integer not null references event (seq),
  listener_seq integer not null references listener (seq),
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

CREATE INDEX dead_letters_in_order on dead_letter (tenant_id, order_key, event_seq)
where ended_at is null and order_key is not null;

CREATE INDEX dead_letters_of_event on dead_letter (event_seq);

CREATE INDEX dead_letters_open on dead_letter (tenant_id, seq) where ended_at is null;

CREATE TABLE decision (
  seq integer primary key,
  tenant_id text not null,
  schedule_seq integer not null references schedule (seq),
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

CREATE TABLE event (
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

CREATE INDEX events_in_order on event (tenant_id, seq);

CREATE INDEX events_of_chain on event (tenant_id, root_event_id, seq) where chain_depth > 0;

CREATE UNIQUE INDEX events_one_per_dedupe_key on event (tenant_id, dedupe_key) where dedupe_key is not null;

CREATE TABLE job (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  lane_seq integer not null references lane (seq),
  name text not null,
  status text not null,
  waits_for text check (waits_for in ('time', 'key', 'host', 'group', 'reservation', 'order')),
  waits_key text,
  priority integer not null check (priority between -1000 and 1000),
  position integer not null ,
  created_at integer not null,
  available_at integer not null,
  params text not null,
  origin text not null,
  attempt integer not null check (attempt >= 1),
  attempts integer not null check (attempts >= 1),
  losses integer not null check (losses >= 0),
  losses_max integer not null check (losses <= losses_max),
  backoff text,
  timeout_ms integer check (timeout_ms > 0),
  retry_of integer references job (seq),
  alone integer not null,
  key text,
  key_held text,
  key_scope text check (key_scope in ('queued', 'done', 'window')),
  key_until integer,
  idempotency_key text,
  limits text,
  limit_key text,
  tags text,
  cause_run_id text,
  root_run_id text,
  run_id text,
  session_seq integer references session (seq),
  started_at integer,
  timeout_at integer,
  name_slot integer,
  key_slot integer,
  lane_slot integer,
  cancel_requested_at integer,
  progress real,
  progress_note text,
  finished_at integer, template_id text, group_seq integer references job_group (seq), group_slot integer, chain_seq integer, awaited integer not null default 0, kind text, kind_seq integer, about text, pinned integer not null default 0, app text, instance integer, registration text, traceparent text,
  unique (tenant_id, id),
  -- One case per status, because every insert and update pays for what is evaluated here.
  check (case status
    when 'queued' then waits_for is null and session_seq is null and started_at is null
      and finished_at is null and coalesce(name_slot, key_slot, lane_slot) is null
    when 'running' then waits_for is null and session_seq is not null and started_at is not null
      and run_id is not null and finished_at is null
    when 'waiting' then waits_for is not null and session_seq is null and started_at is null
      and finished_at is null and coalesce(name_slot, key_slot, lane_slot) is null
    else waits_for is null and session_seq is null and started_at is null
      and finished_at is not null and coalesce(name_slot, key_slot, lane_slot) is null
      and (status in ('cancelled', 'skipped') or (status in ('completed', 'failed') and run_id is not null))
    end)
) strict;

CREATE INDEX deliveries_in_order on job (tenant_id, limit_key, kind_seq)
where kind = 'delivery' and limit_key is not null and finished_at is null;

CREATE UNIQUE INDEX deliveries_one_chain on job (tenant_id, kind_seq, name)
where kind = 'delivery' and retry_of is null;

CREATE INDEX jobs_current_in_group on job (group_seq)
where group_seq is not null and finished_at is null and coalesce(waits_for, '') <> 'group';

CREATE INDEX jobs_due on job (available_at)
where status = 'waiting' and waits_for = 'time' and waits_key is null;

CREATE INDEX jobs_of_group on job (group_seq, group_slot, seq) where group_seq is not null;

CREATE UNIQUE INDEX jobs_one_per_idempotency_key on job (tenant_id, idempotency_key)
where idempotency_key is not null;

CREATE UNIQUE INDEX jobs_one_per_key on job (tenant_id, name, key_held) where key_held is not null;

CREATE UNIQUE INDEX jobs_one_per_key_slot on job (tenant_id, limit_key, key_slot) where key_slot is not null;

CREATE UNIQUE INDEX jobs_one_per_lane_slot on job (lane_seq, lane_slot) where lane_slot is not null;

CREATE UNIQUE INDEX jobs_one_per_name_slot on job (tenant_id, name, name_slot) where name_slot is not null;

CREATE UNIQUE INDEX jobs_one_retry on job (retry_of) where retry_of is not null;

CREATE INDEX jobs_open_by_kind on job (tenant_id, kind, kind_seq) where kind is not null and finished_at is null;

CREATE INDEX jobs_open_in_group on job (group_seq, group_slot)
where group_seq is not null and finished_at is null;

CREATE INDEX jobs_running on job (session_seq) where status = 'running';

CREATE INDEX jobs_standing_by on job (lane_seq, priority desc, position) where status = 'waiting';

CREATE INDEX jobs_timing_out on job (timeout_at) where status = 'running' and timeout_at is not null;

CREATE INDEX jobs_to_claim on job (lane_seq, priority desc, position, seq)
where status = 'queued';

CREATE INDEX jobs_waiting on job (waits_for, waits_key, tenant_id, lane_seq, priority desc, position, seq)
where status = 'waiting' and waits_key is not null;

CREATE TABLE job_group (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text,
  mode text not null check (mode in ('sequential', 'parallel')),
  on_failure text not null check (on_failure in ('stop', 'continue', 'skip')),
  status text not null default 'open' check (status in ('open', 'completed', 'failed', 'partial', 'cancelled')),
  slots integer not null check (slots >= 0),
  created_at integer not null,
  cancel_requested_at integer,
  stopped_at integer,
  finished_at integer,
  unique (tenant_id, id),
  check ((status = 'open') = (finished_at is null))
) strict;

CREATE TABLE job_step (
  tenant_id text not null,
  chain_seq integer not null references job (seq),
  place integer not null,
  name text not null,
  result text,
  run_id text not null,
  done_at integer not null,
  primary key (tenant_id, chain_seq, place)
) strict;

CREATE INDEX job_steps_of_job on job_step (chain_seq);

CREATE TABLE job_template (
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
  created_at integer not null,
  updated_at integer not null,
  archived_at integer,
  revision integer not null default 1,
  unique (tenant_id, id),
  unique (tenant_id, name)
) strict;

CREATE TABLE lane (
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

CREATE TABLE listener (
  seq integer primary key,
  tenant_id text not null,
  name text not null,
  topics text not null,
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

CREATE TABLE listener_change (
  one integer primary key check (one = 1),
  stamp text not null
) strict;

CREATE TABLE migration (
  number integer primary key,
  name text not null,
  hash text not null,
  applied_at integer not null
) strict;

CREATE TABLE paused_name (
  tenant_id text not null,
  name text not null,
  paused_at integer not null,
  note text,
  primary key (tenant_id, name)
) strict;

CREATE TABLE pruning (
  seq integer primary key,
  tenant_id text not null,
  pruned_at integer not null,
  what text not null,
  filter text not null,
  removed integer not null,
  first_at integer,
  last_at integer
) strict;

CREATE INDEX prunings_of_tenant on pruning (tenant_id, seq);

CREATE TABLE rate_window (
  tenant_id text not null,
  rate_key text not null,
  window_at integer not null,
  used integer not null,
  let_in integer not null,
  opens_at integer,
  primary key (tenant_id, rate_key)
) strict;

CREATE INDEX rates_to_open on rate_window (opens_at) where opens_at is not null;

CREATE TABLE record (seq integer primary key,
tenant_id text not null,
type_seq integer not null references record_type (seq),
key text not null,
from_type_seq integer references record_type (seq),
from_key text,
to_type_seq integer references record_type (seq),
to_key text,
instance_key text,
revision integer not null check (revision >= 1),
schema_version integer not null,
from_commit integer not null, body text not null,
      unique (type_seq, tenant_id, key),
check ((from_key is null) = (to_key is null) and (from_key is null) = (instance_key is null)
  and (from_key is null) = (from_type_seq is null) and (to_key is null) = (to_type_seq is null))) strict;

CREATE INDEX relations_from on record (tenant_id, from_type_seq, from_key, type_seq) where from_key is not null;

CREATE INDEX relations_to on record (tenant_id, to_type_seq, to_key, type_seq) where to_key is not null;

CREATE TABLE record_change (
  tenant_id text not null,
  commit_id integer not null,
  position integer not null,
  type_seq integer not null references record_type (seq),
  key text not null,
  kind text not null check (kind in ('created', 'updated', 'deleted')),
  revision integer not null,
  primary key (tenant_id, commit_id, position),
  foreign key (tenant_id, commit_id) references record_commit (tenant_id, id)
) strict, without rowid;

CREATE TABLE record_commit (
  tenant_id text not null,
  id integer not null check (id >= 1),
  committed_at integer not null,
  changes integer not null check (changes >= 1),
  actor text,
  reason text,
  metadata text not null,
  run_id text,
  root_run_id text,
  primary key (tenant_id, id)
) strict, without rowid;

CREATE INDEX commits_by_time on record_commit (tenant_id, committed_at, id);

CREATE TABLE record_head (
  tenant_id text not null primary key,
  commit_id integer not null check (commit_id >= 0),
  committed_at integer not null
) strict, without rowid;

CREATE TABLE record_schema (
  seq integer primary key,
  tenant_id text not null,
  type_seq integer not null references record_type (seq),
  version integer not null check (version >= 1),
  schema text not null,
  hash text not null,
  reason text not null,
  created_at integer not null,
  unique (tenant_id, type_seq, version),
  unique (tenant_id, type_seq, hash),
  check ((version = 1) = (reason = 'initial'))
) strict;

CREATE TABLE record_type (
  seq integer primary key,
  tenant_id text not null,
  kind text not null check (kind in ('entity', 'relation')),
  name text not null,
  from_type_seq integer references record_type (seq),
  to_type_seq integer references record_type (seq),
  created_at integer not null,
  unique (tenant_id, name),
  check ((kind = 'relation') = (from_type_seq is not null)),
  check ((kind = 'relation') = (to_type_seq is not null))
) strict;

CREATE TABLE record_version (seq integer primary key,
tenant_id text not null,
type_seq integer not null references record_type (seq),
key text not null,
from_type_seq integer references record_type (seq),
from_key text,
to_type_seq integer references record_type (seq),
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
check ((from_key is null) = (to_key is null) and (from_key is null) = (instance_key is null)
  and (from_key is null) = (from_type_seq is null) and (to_key is null) = (to_type_seq is null))) strict;

CREATE INDEX versions_closed on record_version (tenant_id, type_seq, to_commit);

CREATE INDEX versions_from on record_version (tenant_id, from_type_seq, from_key, to_commit) where from_key is not null;

CREATE INDEX versions_to on record_version (tenant_id, to_type_seq, to_key, to_commit) where to_key is not null;

CREATE TABLE registration (
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

CREATE TABLE reservation (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  lane_seq integer not null references lane (seq),
  session_seq integer not null references session (seq),
  note text,
  -- The direct work that it was made for; null when somebody holds the queue by hand.
  job_id text,
  reserved_at integer not null,
  expires_at integer not null,
  ended_at integer,
  status text not null default 'active' check (status in ('active', 'released', 'expired')),
  unique (tenant_id, id),
  check ((status = 'active') = (ended_at is null))
) strict;

CREATE INDEX reservations_of_session on reservation (session_seq) where status = 'active';

CREATE UNIQUE INDEX reservations_one_per_lane on reservation (lane_seq) where status = 'active';

CREATE TABLE run (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  kind text not null,
  name text not null,
  job_id text,
  session_seq integer references session (seq),
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
  root_run_id text, event_id text, topic text, app text, instance integer, registration text,
  unique (tenant_id, id)
) strict;

CREATE INDEX runs_registered on run (tenant_id, (coalesce(registration, name)), seq)
where job_id is null or registration is not null;

CREATE INDEX runs_unlike_success on run (tenant_id, status, seq) where status <> 'success';

CREATE TABLE run_command (
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

CREATE INDEX run_commands_open on run_command (host, started_at) where ended_at is null;

CREATE TABLE run_eviction (
  tenant_id text not null,
  day_at integer not null,
  what text not null check (what in ('run', 'log', 'rollup')),
  reason text not null check (reason in ('age', 'size')),
  removed integer not null,
  -- The newest of what was removed.
  until_at integer not null,
  primary key (tenant_id, day_at, what, reason)
) strict;

CREATE TABLE run_failure (
  series_seq integer not null references run_series (seq),
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

CREATE INDEX run_failures_by_last on run_failure (series_seq, last_seq);

CREATE TABLE run_fold (
  one integer primary key check (one = 1),
  folded_seq integer not null
) strict;

CREATE TABLE run_log (
  seq integer primary key,
  tenant_id text not null,
  run_id text not null,
  logged_at integer not null,
  level text not null check (level in ('debug', 'info', 'warn', 'error')),
  message text not null,
  fields text
) strict;

CREATE INDEX run_logs_of_run on run_log (tenant_id, run_id, seq);

CREATE TABLE run_pin (
  tenant_id text not null,
  run_id text not null,
  pinned_at integer not null,
  note text,
  primary key (tenant_id, run_id)
) strict;

CREATE TABLE run_rollup (
  series_seq integer not null references run_series (seq),
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

CREATE TABLE run_series (
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

CREATE TABLE schedule (
  seq integer primary key,
  tenant_id text not null,
  id text not null,
  name text not null,
  source text not null check (source in ('code', 'api')),
  kind text not null check (kind in ('cron', 'every', 'once', 'daily')),
  expression text not null,
  zone text not null,
  gap text not null check (gap in ('shift', 'skip')),
  overlap text not null check (overlap in ('first', 'last', 'both')),
  starts_at integer,
  ends_at integer,
  anchor_at integer,
  target text not null check (target in ('job', 'template', 'event')),
  target_name text not null,
  job text not null,
  missed text not null check (missed in ('latest', 'all', 'skip')),
  max_lateness_ms integer check (max_lateness_ms >= 0),
  concurrency text not null check (concurrency in ('skip', 'queue', 'cancel', 'allow')),
  jitter_ms integer not null check (jitter_ms >= 0),
  max_fires integer check (max_fires > 0),
  pause_after integer check (pause_after > 0),
  fires integer not null default 0,
  failures integer not null default 0,
  cursor_at integer not null,
  next_at integer,
  last_fired_at integer,
  paused_at integer,
  paused_note text,
  removed_at integer,
  restored integer not null default 0,
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

CREATE INDEX schedules_due on schedule (next_at) where next_at is not null;

CREATE INDEX schedules_restored on schedule (seq) where restored = 1;

CREATE TABLE session (
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
  metadata text not null default '{}', dropped_runs integer not null default 0, dropped_logs integer not null default 0, dropped_events integer not null default 0,
  check ((status = 'running') = (stopped_at is null)),
  check ((status = 'error') = (error_type is not null)),
  check (last_heartbeat_at >= started_at)
) strict;

CREATE INDEX sessions_running on session (seq) where status = 'running';

CREATE TABLE session_host (
  session_seq integer not null references session (seq),
  name text not null,
  queue text
) strict;

CREATE UNIQUE INDEX session_hosts_once on session_host (session_seq, name, coalesce(queue, ''));

CREATE VIEW commits as select
id, tenant_id, committed_at as created_at, metadata as metadata_json, actor, reason from record_commit;

CREATE VIEW dead_letters as select
  letter.seq as id, event.id as event_id, listener.name as handler_id, letter.tenant_id as namespace,
  letter.tenant_id, letter.failed_at, letter.attempts, letter.error_message as last_error,
  event.topic as event_type, event.payload as event_payload, event.root_event_id, event.chain_depth
from dead_letter letter join event on event.seq = letter.event_seq
join listener on listener.seq = letter.listener_seq
where letter.ended_at is null;

CREATE VIEW direct_reservations as select
  reservation.id as reservation_id, reservation.tenant_id, lane.queue, reservation.reserved_at,
  session.id as reserved_by, upper(reservation.status) as status, reservation.expires_at, reservation.ended_at
from reservation join lane on lane.seq = reservation.lane_seq
join session on session.seq = reservation.session_seq;

CREATE VIEW entity_history as select
  version.type_seq || '/' || version.key || '@' || version.from_commit as id, version.tenant_id, record_type.name as entity_type, version.key as entity_key,
  version.body as fields_json, version.from_commit as commit_id, version.schema_version as schema_version_id,
  version.to_commit as ended_commit_id
from (
select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
  null as to_commit from record where from_key is null
union all select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
  to_commit from record_version where from_key is null) as version join record_type on record_type.seq = version.type_seq;

CREATE VIEW event_claims as select
  event.id as event_id, substr(job.name, 10) as handler_id, event.tenant_id,
  coalesce(owner.id, ran.id, before_ran.id) as session_id,
  coalesce(job.started_at, run.started_at, before.started_at) as claimed_at,
  coalesce(owner.last_heartbeat_at + 30000, run.ended_at, before.ended_at) as lease_until,
  case job.status when 'completed' then job.finished_at end as ack_at,
  case job.status when 'failed' then job.attempt else job.attempt - 1 end as attempts,
  job.available_at, coalesce(run.error_message, before.error_message) as last_error,
  letter.failed_at as dead_lettered_at
from job join event on event.seq = job.kind_seq
left join session owner on owner.seq = job.session_seq
left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
left join session ran on ran.seq = run.session_seq
left join job parent on parent.seq = job.retry_of
left join run before on before.tenant_id = parent.tenant_id and before.id = parent.run_id
left join session before_ran on before_ran.seq = before.session_seq
left join listener on listener.tenant_id = job.tenant_id and listener.name = substr(job.name, 10)
left join dead_letter letter on letter.tenant_id = job.tenant_id and letter.event_seq = event.seq
  and letter.listener_seq = listener.seq and letter.ended_at is null
where job.kind = 'delivery' and (job.run_id is not null or job.retry_of is not null)
  and not exists (select 1 from job child where child.retry_of = job.seq);

CREATE VIEW events as with one as (select * from event) select
  id, tenant_id as namespace, tenant_id, topic as type, payload, published_at as created_at, priority,
  root_event_id, chain_depth
from one;

CREATE VIEW handler_invocations as select run.id, run.tenant_id, registration.id as listener_id, session.id as session_id,
run.started_at as execution_start_dtme, run.started_at as execution_start_ts, run.duration_ms,
case when run.status in ('timed_out', 'lost') then 'error' when run.status = 'skipped' then 'cancelled'
  else run.status end as status,
run.error_type, run.error_message, run.error_trace as error_traceback
from run left join session on session.seq = run.session_seq
left join registration on registration.tenant_id = run.tenant_id and registration.app_key = run.app
  and registration.instance_index = run.instance and registration.name = run.registration
  and registration.kind = 'listener' where run.kind in ('listener', 'delivery');

CREATE VIEW http_execution_log as with one as (select * from call_attempt) select
  tenant_id, call_id as service_call_id, id as execution_id, started_at, finished_at, url as request_url,
  method as request_method, request_headers, request_body, cast(response_status as text) as response_status,
  response_headers, response_body, error_message
from one;

CREATE VIEW job_executions as select run.id, run.tenant_id, registration.id as job_id, session.id as session_id,
run.started_at as execution_start_dtme, run.started_at as execution_start_ts, run.duration_ms,
case when run.status in ('timed_out', 'lost') then 'error' when run.status = 'skipped' then 'cancelled'
  else run.status end as status,
run.error_type, run.error_message, run.error_trace as error_traceback
from run left join session on session.seq = run.session_seq
left join registration on registration.tenant_id = run.tenant_id and registration.app_key = run.app
  and registration.instance_index = run.instance and registration.name = run.registration
  and registration.kind = 'schedule' where run.kind = 'schedule';

CREATE VIEW job_groups as with one as (select * from job_group) select
  id as group_id, tenant_id, name, mode, on_failure, upper(status) as status, created_at, finished_at
from one;

CREATE VIEW job_runs as select
  run.id as run_id, run.tenant_id, run.job_id, job.template_id, job.params as params_snapshot,
  case run.status when 'success' then 'COMPLETED' when 'skipped' then 'SKIPPED'
    when 'cancelled' then 'CANCELLED' else 'FAILED' end as status,
  run.started_at, run.ended_at as finished_at, command.exit_code, run.error_message as error,
  coalesce(command.artifacts, '[]') as artifacts, command.log_path
from run join job on job.tenant_id = run.tenant_id and job.id = run.job_id
left join run_command command on command.tenant_id = run.tenant_id and command.run_id = run.id
union all select
  job.run_id, job.tenant_id, job.id, job.template_id, job.params, null, job.started_at, null, null, null, '[]',
  command.log_path
from job left join run_command command on command.tenant_id = job.tenant_id and command.run_id = job.run_id
where job.status = 'running';

CREATE VIEW job_templates as with one as (select * from job_template) select
  id as template_id, tenant_id, name, job_name as job_type, params as default_params, queue, priority,
  attempts as max_attempts, backoff as retry_policy, created_at, updated_at, archived_at
from one;

CREATE VIEW jobs as select
  job.id as job_id, job.tenant_id, job.template_id, schedule.id as schedule_id, job_group.id as group_id,
  job.name as job_type, job.params,
  case job.status when 'waiting' then 'QUEUED' else upper(job.status) end as status,
  job.priority, job.position, parent.id as retry_of, job.created_at, job.created_at as queued_at,
  coalesce(job.started_at, run.started_at) as started_at, job.finished_at,
  coalesce(session.id, ran.id) as worker_id
from job
left join schedule on job.kind = 'schedule' and schedule.seq = job.kind_seq
left join job_group on job_group.seq = job.group_seq
left join job parent on parent.seq = job.retry_of
left join session on session.seq = job.session_seq
left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
left join session ran on ran.seq = run.session_seq;

CREATE VIEW listeners as with one as (select * from registration where kind = 'listener') select
  id, tenant_id, app_key, instance_index, name, handler_method, topic, debounce_ms / 1000.0 as debounce,
  throttle_ms / 1000.0 as throttle, once, priority, predicate as predicate_description, source_location,
  registration_source, first_registered_at, last_registered_at, retired_at
from one;

CREATE VIEW outbox as select
  event.seq as id, event.tenant_id, coalesce(event.key, event.id) as aggregate_id, event.topic as event_type,
  event.payload as event_payload, event.published_at as created_at,
  case job.status when 'completed' then job.finished_at end as published_at, substr(job.name, 15) as sink
from job join event on event.tenant_id = job.tenant_id and event.seq = job.kind_seq
left join job later on later.retry_of = job.seq
where job.kind = 'delivery' and later.seq is null and substr(job.name, 1, 14) = 'listener:sink:'
  and job.status not in ('cancelled', 'skipped') and not exists (select 1 from dead_letter letter
    where letter.tenant_id = job.tenant_id and letter.event_seq = event.seq and letter.job_id = job.id
      and letter.status = 'discarded');

CREATE VIEW relation_history as select
  version.type_seq || '/' || version.key || '@' || version.from_commit as id, version.tenant_id, record_type.name as relation_type, version.from_key as left_key,
  version.to_key as right_key, version.instance_key, version.body as fields_json,
  version.from_commit as commit_id, version.schema_version as schema_version_id, version.to_commit as ended_commit_id
from (
select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
  null as to_commit from record where from_key is not null
union all select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
  to_commit from record_version where from_key is not null) as version join record_type on record_type.seq = version.type_seq;

CREATE VIEW scheduled_jobs as with one as (select * from registration where kind = 'schedule') select
  id, tenant_id, app_key, instance_index, name as job_name, handler_method, trigger_type, trigger_value, repeat,
  args as args_json, kwargs as kwargs_json, source_location, registration_source, first_registered_at,
  last_registered_at, retired_at
from one;

CREATE VIEW schedules as select
  schedule.id as schedule_id, schedule.tenant_id, template.id as template_id, schedule.name,
  schedule.expression as cron_expression, schedule.zone as timezone,
  case when schedule.paused_at is null and schedule.removed_at is null then 1 else 0 end as enabled,
  case schedule.target when 'template' then json_extract(schedule.job, '$.overrides')
    else json_extract(schedule.job, '$.prepared.params') end as param_overrides, schedule.last_fired_at as last_triggered_at,
  schedule.next_at as next_trigger_at, schedule.created_at
from schedule left join job_template template
  on template.tenant_id = schedule.tenant_id and template.name = schedule.target_name
    and schedule.target = 'template'
where schedule.removed_at is null;

CREATE VIEW schema_registry as select tenant_id, type_kind, type_name, schema_json from schema_versions as newest
where schema_version_id = (select max(version) from record_schema join record_type on record_type.seq = record_schema.type_seq
  where record_type.tenant_id = newest.tenant_id and record_type.name = newest.type_name);

CREATE VIEW schema_versions as select
  record_schema.seq as id, record_schema.tenant_id, record_type.kind as type_kind, record_type.name as type_name,
  record_schema.version as schema_version_id, record_schema.schema as schema_json, record_schema.hash as schema_hash,
  record_schema.created_at, cast(null as text) as runtime_id, record_schema.reason
from record_schema join record_type on record_type.seq = record_schema.type_seq;

CREATE VIEW service_call_tags as with one as (select * from call_tag) select
  tenant_id, call_id as service_call_id, tag
from one;

CREATE VIEW service_calls as with one as (select * from call) select
  tenant_id, id as service_call_id, name,
  upper(substr(status, 1, 1)) || substr(status, 2) as status, submitted_at, due_at, started_at, finished_at,
  request as request_spec, outcome as outcome_meta
from one;

CREATE VIEW sessions as with one as (select * from session) select
  id, id as session_id, null as namespace, null as tenant_id, started_at, stopped_at, last_heartbeat_at,
  last_heartbeat_at as last_heartbeat, status, error_type, error_message, error_trace as error_traceback,
  metadata, host, pid
from one;

CREATE VIEW timer_schedules as with one as (select * from call) select
  tenant_id, id as service_call_id, correlation_id, due_at, submitted_at as registered_at,
  started_at as reached_at, case when started_at is null then 'Scheduled' else 'Reached' end as state
from one;
