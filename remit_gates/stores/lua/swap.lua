-- ARGV: the version that is expected (empty for none), the token of the claim and its lease
-- in microseconds (empty for none), the record, and 1 if what was there is to be told.
--
-- A version is never used twice for one run, even when it was deleted in between: it starts
-- at the clock in microseconds and grows by one a swap. One that was read of an expired claim
-- is negated, and holds only while the claim is expired still: renewing moves no version.
--
-- Everything is judged before the one command that writes, so an error changes nothing.
local expected, token, lease, record, tell = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local row = redis.call('HMGET', KEYS[1], 'version', 'token', 'expires', 'updated', 'record')
local version = now
if expected == '' then
    if row[1] then return false end
else
    local lapsed = string.sub(expected, 1, 1) == '-'
    if lapsed then expected = string.sub(expected, 2) end
    if row[1] ~= expected then return false end
    if lapsed and (row[3] == '' or tonumber(row[3]) > now) then return false end
    version = expected + 1
end
version = string.format('%.0f', version)
local expires = lease == '' and '' or string.format('%.0f', now + lease)
redis.call('HSET', KEYS[1], 'version', version, 'token', token, 'expires', expires,
    'updated', string.format('%.0f', now), 'record', record)
if tell == '1' then return {version, row[1], row[2], row[3], row[4], row[5]} end
return version
