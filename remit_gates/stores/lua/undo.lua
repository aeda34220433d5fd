-- Puts back what a swap replaced, if the version is still the one that it made. ARGV: that
-- version, then token, expiry, time and record of before, or nothing if there was none.
local version = ARGV[1]
if redis.call('HGET', KEYS[1], 'version') ~= version then return 0 end
if #ARGV == 1 then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version + 1), 'token', ARGV[2],
    'expires', ARGV[3], 'updated', ARGV[4], 'record', ARGV[5])
return 1
