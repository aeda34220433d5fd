-- What is known of a run, and the clock of the same moment in microseconds. A run without a
-- record has no version; a record without a claim expires never, which is the empty string.
local row = redis.call('HMGET', KEYS[1], 'version', 'expires', 'updated', 'record')
local time = redis.call('TIME')
row[5] = time[1] .. string.format('%06d', time[2])
return row
