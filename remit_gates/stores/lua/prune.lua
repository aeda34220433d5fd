-- Forgets a record that has no claim and was last swapped long ago.
-- ARGV: how long, in microseconds.
local row = redis.call('HMGET', KEYS[1], 'token', 'updated')
if row[1] ~= '' or not row[2] then return 0 end
local time = redis.call('TIME')
if tonumber(row[2]) >= time[1] * 1000000 + time[2] - ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
