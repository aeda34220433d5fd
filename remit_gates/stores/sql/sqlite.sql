-- Statements of the SQLite store. They do with SQLite 3.35, so there is no
-- unixepoch('subsec'): the clock is (julianday('now') - 2440587.5) * 86400.0, in whole
-- milliseconds, and stands still within one statement.

-- name: read
-- A left join, so that the clock is told even where there is no record.
SELECT r.version, r.record, r.expires, c.now
  FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS c
  LEFT JOIN {table} AS r
    ON r.framework = :framework AND r.namespace = :namespace AND r.run = :run

-- name: insert
-- A version is never used twice for one run, even when it was deleted in between: it starts
-- at the clock in microseconds and grows by one a swap. The clock is too coarse to tell a
-- run that comes back within the millisecond, so it also starts above all that were deleted.
INSERT INTO {table} (framework, namespace, run, version, token, expires, updated, record)
SELECT :framework, :namespace, :run,
       (SELECT max(CAST(c.now * 1000000 AS INTEGER), floor + 1) FROM {meta} WHERE name = :table),
       :token,
       c.now + :lease,
       c.now,
       :record
  FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS c
 WHERE true
    ON CONFLICT (framework, namespace, run) DO NOTHING
RETURNING version

-- name: swap
-- A renewal that was under way while the record was read, and committed since, did not move
-- the version. So whoever read the claim as expired expects the version negated, and that
-- holds only while the claim is expired still.
UPDATE {table}
   SET version = version + 1,
       token = :token,
       expires = (julianday('now') - 2440587.5) * 86400.0 + :lease,
       updated = (julianday('now') - 2440587.5) * 86400.0,
       record = :record
 WHERE framework = :framework AND namespace = :namespace AND run = :run
   AND version = abs(:expected)
   AND (:expected > 0 OR expires <= (julianday('now') - 2440587.5) * 86400.0)
RETURNING version

-- name: renew
UPDATE {table}
   SET expires = (julianday('now') - 2440587.5) * 86400.0 + :lease
 WHERE framework = :framework AND namespace = :namespace AND run = :run
   AND token = :token
   AND expires > (julianday('now') - 2440587.5) * 86400.0
RETURNING 1

-- name: delete
DELETE FROM {table}
 WHERE framework = :framework AND namespace = :namespace AND run = :run
RETURNING 1

-- name: page
-- SQLite plans without the parameters, so the range of the primary key is always given: a
-- blob sorts behind every text. A join, be it with one row, would have it sort the rows.
SELECT framework, namespace, run, version, record, expires,
       (julianday('now') - 2440587.5) * 86400.0, updated
  FROM {table}
 WHERE (framework, namespace, run) >= (:start_framework, :start_namespace, :start_run)
   AND (framework, namespace) <= (coalesce(:framework, x''), coalesce(:namespace, x''))
   AND (:inclusive OR (framework, namespace, run)
                      <> (:start_framework, :start_namespace, :start_run))
   AND (:framework IS NULL OR framework = :framework)
   AND (:namespace IS NULL OR namespace = :namespace)
   AND (:claimed IS NULL OR (token IS NOT NULL) = :claimed)
   AND (:idle IS NULL OR updated < (julianday('now') - 2440587.5) * 86400.0 - :idle)
 ORDER BY framework, namespace, run
 LIMIT :limit

-- name: prune
DELETE FROM {table}
 WHERE (framework, namespace, run) IN (
       SELECT framework, namespace, run
         FROM {table}
        WHERE token IS NULL
          AND updated < (julianday('now') - 2440587.5) * 86400.0 - :older_than
        LIMIT :limit)
RETURNING 1

-- name: version
SELECT version FROM {meta} WHERE name = :table

-- name: create_meta
CREATE TABLE IF NOT EXISTS {meta} (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    floor INTEGER NOT NULL DEFAULT 0
)

-- name: create_table
CREATE TABLE IF NOT EXISTS {table} (
    framework TEXT NOT NULL,
    namespace TEXT NOT NULL,
    run TEXT NOT NULL,
    version INTEGER NOT NULL,
    token INTEGER,
    expires REAL,
    updated REAL NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (framework, namespace, run)
)

-- name: create_trigger
CREATE TRIGGER IF NOT EXISTS {trigger} AFTER DELETE ON {table}
BEGIN
    UPDATE {meta} SET floor = max(floor, OLD.version) WHERE name = {literal};
END

-- name: mark
INSERT INTO {meta} (name, version) VALUES (:table, :version)
    ON CONFLICT (name) DO NOTHING
