-- Statements of the Postgres store. Each is one round trip and one transaction of its own,
-- and leaves no session state, so that a transaction pooler may stand in between. Where none
-- does, read, insert, swap and renew are prepared.
--
-- The clock is clock_timestamp(): now() stands still in a transaction. In a WHERE it is
-- called in place, so that a row that had to be waited for is judged by the time after
-- the wait.

-- name: read
-- A left join, so that the clock is told even where there is no record.
SELECT version, record, date_part('epoch', expires), date_part('epoch', clock_timestamp())
  FROM (VALUES (1)) AS always
  LEFT JOIN {table}
    ON framework = %(framework)s AND namespace = %(namespace)s AND run = %(run)s

-- name: insert
-- A version is never used twice for one run, even when it was deleted in between: it starts
-- at the clock in microseconds and grows by one a swap. For RETURNING, see swap.
INSERT INTO {table} (framework, namespace, run, version, token, expires, updated, record)
VALUES (%(framework)s, %(namespace)s, %(run)s,
        (date_part('epoch', clock_timestamp()) * 1000000)::bigint,
        %(token)s::bigint,
        clock_timestamp() + %(lease)s::float8 * interval '1 second',
        clock_timestamp(),
        %(record)s)
    ON CONFLICT (framework, namespace, run) DO NOTHING
RETURNING version,
       set_config('synchronous_commit',
                  CASE WHEN NOT %(durable)s THEN 'off'
                       WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
                       ELSE current_setting('synchronous_commit') END, true)

-- name: swap
-- A renewal that was under way while the record was read, and committed since, did not move
-- the version. So whoever read the claim as expired expects the version negated, and that
-- holds only while the claim is expired still.
--
-- How the commit is to be made is set in RETURNING, which runs before the commit, only where
-- something was changed, and costs the planner nothing.
UPDATE {table}
   SET version = version + 1,
       token = %(token)s::bigint,
       expires = clock_timestamp() + %(lease)s::float8 * interval '1 second',
       updated = clock_timestamp(),
       record = %(record)s
 WHERE framework = %(framework)s AND namespace = %(namespace)s AND run = %(run)s
   AND version = abs(%(expected)s::bigint)
   AND (%(expected)s::bigint > 0 OR expires <= clock_timestamp())
RETURNING version,
       set_config('synchronous_commit',
                  CASE WHEN NOT %(durable)s THEN 'off'
                       WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
                       ELSE current_setting('synchronous_commit') END, true)

-- name: renew
UPDATE {table}
   SET expires = clock_timestamp() + %(lease)s::float8 * interval '1 second'
 WHERE framework = %(framework)s AND namespace = %(namespace)s AND run = %(run)s
   AND token = %(token)s
   AND expires > clock_timestamp()
RETURNING set_config('synchronous_commit', 'off', true)

-- name: delete
DELETE FROM {table}
 WHERE framework = %(framework)s AND namespace = %(namespace)s AND run = %(run)s
RETURNING 1

-- name: page
-- The unnamed statement is planned with its parameters known, so what is NULL drops out, and
-- the rest is a range of the primary key in its own order.
SELECT framework, namespace, run, version, record,
       date_part('epoch', expires), date_part('epoch', clock_timestamp()),
       date_part('epoch', updated)
  FROM {table}
 WHERE (framework, namespace, run)
       >= (%(start_framework)s, %(start_namespace)s, %(start_run)s)
   AND (%(inclusive)s OR (framework, namespace, run)
                         <> (%(start_framework)s, %(start_namespace)s, %(start_run)s))
   AND (%(framework)s::text IS NULL OR framework = %(framework)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND (%(claimed)s::boolean IS NULL OR (token IS NOT NULL) = %(claimed)s)
   AND (%(idle)s::float8 IS NULL
        OR updated < clock_timestamp() - %(idle)s::float8 * interval '1 second')
 ORDER BY framework, namespace, run
 LIMIT %(limit)s

-- name: prune
-- The conditions stand outside once more: a row that was claimed since it was picked is
-- judged again before it goes.
DELETE FROM {table}
 WHERE token IS NULL
   AND updated < clock_timestamp() - %(older_than)s::float8 * interval '1 second'
   AND (framework, namespace, run) IN (
       SELECT framework, namespace, run
         FROM {table}
        WHERE token IS NULL
          AND updated < clock_timestamp() - %(older_than)s::float8 * interval '1 second'
        LIMIT %(limit)s)
RETURNING 1

-- name: version
SELECT version FROM {meta} WHERE name = %(table)s

-- name: settings
-- What decides whether an acknowledged claim can be lost. Every role may ask for it.
SELECT current_setting('server_version'),
       pg_is_in_recovery(),
       current_setting('transaction_read_only'),
       current_setting('fsync'),
       current_setting('full_page_writes'),
       current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names'),
       (SELECT count(*) FROM pg_stat_replication),
       (SELECT bool_and(has_table_privilege(to_regclass(%(table)s), needed))
          FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed)

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS {schema}

-- name: create_meta
CREATE TABLE IF NOT EXISTS {meta} (
    name text PRIMARY KEY,
    version integer NOT NULL
)

-- name: create_table
-- Keys are compared byte by byte, so that a scan has the same order everywhere. Nothing but
-- the key is indexed and pages keep some room, so that an update moves no index entry.
CREATE TABLE IF NOT EXISTS {table} (
    framework text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    token bigint,
    expires timestamptz,
    updated timestamptz NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (framework, namespace, run)
) WITH (fillfactor = 80)

-- name: mark
INSERT INTO {meta} (name, version) VALUES (%(table)s, %(version)s)
    ON CONFLICT (name) DO NOTHING
