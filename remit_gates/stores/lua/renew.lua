-- Has the claim with a token live on, unless it has expired. The version stays.
-- ARGV: the token, and the lease in microseconds.
local row = redis.call('HMGET', KEYS[1], 'token', 'expires')
if row[1] ~= ARGV[1] or not row[2] or row[2] == '' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if tonumber(row[2]) <= now then return 0 end
redis.call('HSET', KEYS[1], 'expires', string.format('%.0f', now + ARGV[2]))
return 1
