SELECT
    toUnixTimestamp64Nano(began),
    (toString(id)),
    ('live'),
    app,
    job,
    if((code != 0), 'FAILED', 'COMPLETED'),
    toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)),
    toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)),
    '',
    '',
    '',
    '',
    CAST(map(), 'Map(String, String)')
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND (code != 0)
  AND began >= fromUnixTimestamp64Nano({after:Int64}, 'UTC')
  AND began < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
ORDER BY began, (toString(id))
LIMIT {limit:UInt64}
-- after = 1795244520123456789
-- after_id = 
-- before = 1795244520123456799
-- limit = 1000
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- tenant = 64656661756c74

SELECT
    toUnixTimestamp64Nano(began),
    (toString(id)),
    ('live'),
    app,
    job,
    if((code != 0), 'FAILED', 'COMPLETED'),
    toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)),
    toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)),
    '',
    '',
    '',
    '',
    CAST(map(), 'Map(String, String)')
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND (code != 0)
  AND (began > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (began = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND (toString(id)) > unhex({after_id:String})))
  AND began < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND app IN (unhex({application_0:String}), unhex({application_1:String}))
  AND ifNull(toUnixTimestamp64Micro(ended), toUnixTimestamp64Micro(began)) >= {ended_since:Int64}
ORDER BY began, (toString(id))
LIMIT {limit:UInt64}
-- after = 1795244520123456789
-- after_id = 617c62
-- application_0 = 69742773
-- application_1 = 6f7264657273
-- before = 1795244520123456799
-- ended_since = 1795244520123456
-- limit = 1000
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- tenant = 64656661756c74

SELECT
    if((code != 0), 'FAILED', 'COMPLETED') AS tocsin_status,
    intDiv(toUnixTimestamp64Nano(began), {width:Int64}) AS tocsin_bucket,
    began >= fromUnixTimestamp64Nano({edge:Int64}, 'UTC') AS tocsin_fresh,
    count(),
    sum(cityHash64((toString(id))))
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND true
  AND began >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND began < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
GROUP BY tocsin_status, tocsin_bucket, tocsin_fresh
-- edge = 0
-- from = 1795244520123456789
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- tenant = 64656661756c74
-- to = 1795244520123456799
-- width = 60000000000

SELECT count()
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND began >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND began < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
-- from = 1795244520123456789
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- tenant = 64656661756c74
-- to = 1795244520123456799

SELECT
    intDiv(toUnixTimestamp64Nano(began), {width:Int64}) AS tocsin_bucket,
    uniqExact((toString(id)))
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND began >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND began < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND true
  AND (app IN (unhex({application_0:String})) OR (startsWith(app, unhex({application_pattern_1_first:String}))))
  AND (true OR (endsWith(job, unhex({route_pattern_1_last:String})) AND least(toUInt64(position(job, unhex({route_pattern_1_0:String}), 1) - 1), 4611686018427387904) + 3 + 3 <= length(job) + 1) OR (startsWith(job, unhex({route_pattern_2_first:String})) AND endsWith(job, unhex({route_pattern_2_last:String})) AND least(toUInt64(position(job, unhex({route_pattern_2_0:String}), 2) - 1), 4611686018427387904) + 2 + 1 <= length(job) + 1))
  AND (('live') IN (unhex({environment_0:String})))
  AND '' IN (unhex({error_type_0:String}), unhex({error_type_1:String}))
  AND toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)) >= {min_duration:Int64}
  AND toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)) <= {max_duration:Int64}
  AND position('', unhex({contains:String})) > 0
  AND match(if(isValidUTF8(''), '', arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll('', '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({matches:String}))
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_0_key:String}))
  AND mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_0_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))] = unhex({attribute_0:String})
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_1_key:String}))
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_2_key:String}))
  AND match(if(isValidUTF8(mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))]), mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))], arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))], '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({attribute_2:String}))
GROUP BY tocsin_bucket
ORDER BY tocsin_bucket
-- application_0 = 6f7264657273
-- application_pattern_1_first = 62696c6c
-- attribute_0 = 3432
-- attribute_0_key = 637573746f6d6572
-- attribute_1_key = 7265747279
-- attribute_2 = 5c4171
-- attribute_2_key = 7175657565
-- contains = 313030252022676f6e6522
-- environment_0 = 70726f64756374696f6e
-- error_type_0 = 54696d656f7574
-- error_type_1 = 69742773
-- from = 1795244520123456789
-- matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- max_duration = 60000000000
-- min_duration = 100000000
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- route_pattern_1_0 = 746f
-- route_pattern_1_last = 657270
-- route_pattern_2_0 = 62
-- route_pattern_2_first = 61
-- route_pattern_2_last = 63
-- tenant = 64656661756c74
-- to = 1795244520123456799
-- width = 60000000000

SELECT
    toUnixTimestamp64Nano(began),
    (toString(id)),
    ('live'),
    app,
    job,
    if((code != 0), 'FAILED', 'COMPLETED'),
    toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)),
    toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)),
    '',
    '',
    '',
    '',
    CAST(map(), 'Map(String, String)')
FROM shop.runs
WHERE unhex('6f2768617261') = unhex({tenant:String})
  AND (bucket >= toUnixTimestamp(fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')) - 1800 AND bucket <= toUnixTimestamp(fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')))
  AND (began > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (began = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND (toString(id)) > unhex({after_id:String})))
  AND began < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND true
  AND (app IN (unhex({application_0:String})) OR (startsWith(app, unhex({application_pattern_1_first:String}))))
  AND (true OR (endsWith(job, unhex({route_pattern_1_last:String})) AND least(toUInt64(position(job, unhex({route_pattern_1_0:String}), 1) - 1), 4611686018427387904) + 3 + 3 <= length(job) + 1) OR (startsWith(job, unhex({route_pattern_2_first:String})) AND endsWith(job, unhex({route_pattern_2_last:String})) AND least(toUInt64(position(job, unhex({route_pattern_2_0:String}), 2) - 1), 4611686018427387904) + 2 + 1 <= length(job) + 1))
  AND (('live') IN (unhex({environment_0:String})))
  AND '' IN (unhex({error_type_0:String}), unhex({error_type_1:String}))
  AND toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)) >= {min_duration:Int64}
  AND toUInt64(greatest(ifNull(toUnixTimestamp64Nano(multiIf(ended > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), ended < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), ended)) - toUnixTimestamp64Nano(began), 0), 0)) <= {max_duration:Int64}
  AND position('', unhex({contains:String})) > 0
  AND match(if(isValidUTF8(''), '', arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll('', '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({matches:String}))
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_0_key:String}))
  AND mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_0_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))] = unhex({attribute_0:String})
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_1_key:String}))
  AND mapContains(CAST(map(), 'Map(String, String)'), unhex({attribute_2_key:String}))
  AND match(if(isValidUTF8(mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))]), mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))], arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(mapValues(CAST(map(), 'Map(String, String)'))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys(CAST(map(), 'Map(String, String)')))], '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({attribute_2:String}))
ORDER BY began, (toString(id))
LIMIT {limit:UInt64}
-- after = 1795244520123456789
-- after_id = 617c62
-- application_0 = 6f7264657273
-- application_pattern_1_first = 62696c6c
-- attribute_0 = 3432
-- attribute_0_key = 637573746f6d6572
-- attribute_1_key = 7265747279
-- attribute_2 = 5c4171
-- attribute_2_key = 7175657565
-- before = 1795244520123456799
-- contains = 313030252022676f6e6522
-- environment_0 = 70726f64756374696f6e
-- error_type_0 = 54696d656f7574
-- error_type_1 = 69742773
-- limit = 1000
-- matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- max_duration = 60000000000
-- min_duration = 100000000
-- prune_from = 1795244520123456789
-- prune_to = 1795244520123456799
-- route_pattern_1_0 = 746f
-- route_pattern_1_last = 657270
-- route_pattern_2_0 = 62
-- route_pattern_2_first = 61
-- route_pattern_2_last = 63
-- tenant = 64656661756c74
