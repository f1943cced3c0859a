SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(materialize(tocsin_0)), groupArray(materialize(tocsin_1)), groupArray(materialize(tocsin_2)), groupArray(materialize(tocsin_3)), groupArray(materialize(tocsin_4)), groupArray(materialize(tocsin_5)), groupArray(materialize(tocsin_6)), groupArray(materialize(tocsin_7)), groupArray(materialize(tocsin_8)), groupArray(materialize(tocsin_9)), groupArray(materialize(tocsin_10)), groupArray(materialize(tocsin_11)), groupArray(materialize(tocsin_12)), groupArray(materialize(tocsin_13))
FROM (
SELECT
    toUnixTimestamp64Nano(Timestamp) AS tocsin_0,
    (concat(TraceId, ':', SpanId)) AS tocsin_1,
    (coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])) AS tocsin_2,
    ServiceName AS tocsin_3,
    SpanName AS tocsin_4,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED') AS tocsin_5,
    ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toInt64(-9223372036854775808)) AS tocsin_6,
    Duration AS tocsin_7,
    (coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])) AS tocsin_8,
    (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))) AS tocsin_9,
    left((coalesce(nullIf(SpanAttributes['exception.stacktrace'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.stacktrace'], Events.Attributes)))), 32768) AS tocsin_10,
    TraceId AS tocsin_11,
    (mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))) AS tocsin_12,
    unhex('64656661756c74') AS tocsin_13
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND Timestamp >= fromUnixTimestamp64Nano({after:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
ORDER BY Timestamp, (concat(TraceId, ':', SpanId))
LIMIT {limit:UInt64}
)
-- after = 1795244520123456789
-- after_id = 
-- before = 1795244520123456799
-- limit = 1001

SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(materialize(tocsin_0)), groupArray(materialize(tocsin_1)), groupArray(materialize(tocsin_2)), groupArray(materialize(tocsin_3)), groupArray(materialize(tocsin_4)), groupArray(materialize(tocsin_5)), groupArray(materialize(tocsin_6)), groupArray(materialize(tocsin_7)), groupArray(materialize(tocsin_8)), groupArray(materialize(tocsin_9)), groupArray(materialize(tocsin_10)), groupArray(materialize(tocsin_11)), groupArray(materialize(tocsin_12)), groupArray(materialize(tocsin_13))
FROM (
SELECT
    toUnixTimestamp64Nano(Timestamp) AS tocsin_0,
    (concat(TraceId, ':', SpanId)) AS tocsin_1,
    (coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])) AS tocsin_2,
    ServiceName AS tocsin_3,
    SpanName AS tocsin_4,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED') AS tocsin_5,
    ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toInt64(-9223372036854775808)) AS tocsin_6,
    Duration AS tocsin_7,
    (coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])) AS tocsin_8,
    (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))) AS tocsin_9,
    left((coalesce(nullIf(SpanAttributes['exception.stacktrace'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.stacktrace'], Events.Attributes)))), 32768) AS tocsin_10,
    TraceId AS tocsin_11,
    (mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))) AS tocsin_12,
    unhex('64656661756c74') AS tocsin_13
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (Timestamp > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (Timestamp = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND (concat(TraceId, ':', SpanId)) > unhex({after_id:String})))
  AND Timestamp < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND ServiceName IN (unhex({application_0:String}), unhex({application_1:String}))
  AND ifNull(toUnixTimestamp64Micro((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000)))), toUnixTimestamp64Micro(Timestamp)) >= {ended_since:Int64}
ORDER BY Timestamp, (concat(TraceId, ':', SpanId))
LIMIT {limit:UInt64}
)
-- after = 1795244520123456789
-- after_id = 617c62
-- application_0 = 69742773
-- application_1 = 6f7264657273
-- before = 1795244520123456799
-- ended_since = 1795244520123456
-- limit = 1001

SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(materialize(tocsin_0)), groupArray(materialize(tocsin_1)), groupArray(materialize(tocsin_2)), groupArray(materialize(tocsin_3)), groupArray(materialize(tocsin_4)), groupArray(materialize(tocsin_5)), groupArray(materialize(tocsin_6)), groupArray(materialize(tocsin_7)), groupArray(materialize(tocsin_8)), groupArray(materialize(tocsin_9)), groupArray(materialize(tocsin_10)), groupArray(materialize(tocsin_11)), groupArray(materialize(tocsin_12)), groupArray(materialize(tocsin_13))
FROM (
SELECT
    toUnixTimestamp64Nano(Timestamp) AS tocsin_0,
    (concat(TraceId, ':', SpanId)) AS tocsin_1,
    (coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])) AS tocsin_2,
    ServiceName AS tocsin_3,
    SpanName AS tocsin_4,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED') AS tocsin_5,
    ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toInt64(-9223372036854775808)) AS tocsin_6,
    Duration AS tocsin_7,
    (coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])) AS tocsin_8,
    (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))) AS tocsin_9,
    left((coalesce(nullIf(SpanAttributes['exception.stacktrace'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.stacktrace'], Events.Attributes)))), 32768) AS tocsin_10,
    TraceId AS tocsin_11,
    (mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))) AS tocsin_12,
    unhex('64656661756c74') AS tocsin_13
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND (Timestamp > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (Timestamp = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND (concat(TraceId, ':', SpanId)) > unhex({after_id:String})))
  AND Timestamp < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND true
  AND (ServiceName IN (unhex({application_0:String})) OR (startsWith(ServiceName, unhex({application_pattern_1_first:String}))))
  AND NOT ((ServiceName IN (unhex({not_application_0:String}))))
  AND (true OR (endsWith(SpanName, unhex({route_pattern_1_last:String})) AND least(toUInt64(position(SpanName, unhex({route_pattern_1_0:String}), 1) - 1), 4611686018427387904) + 3 + 3 <= length(SpanName) + 1) OR (startsWith(SpanName, unhex({route_pattern_2_first:String})) AND endsWith(SpanName, unhex({route_pattern_2_last:String})) AND least(toUInt64(position(SpanName, unhex({route_pattern_2_0:String}), 2) - 1), 4611686018427387904) + 2 + 1 <= length(SpanName) + 1))
  AND NOT ((SpanName IN (unhex({not_route_0:String})) OR (endsWith(SpanName, unhex({not_route_pattern_1_last:String})))))
  AND ((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])) IN (unhex({environment_0:String})))
  AND NOT (((startsWith((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])), unhex({not_environment_pattern_0_first:String})))))
  AND (coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])) IN (unhex({error_type_0:String}), unhex({error_type_1:String}))
  AND NOT ((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])) IN (unhex({not_error_type_0:String})))
  AND Duration >= {min_duration:Int64}
  AND Duration <= {max_duration:Int64}
  AND position((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), unhex({contains:String})) > 0
  AND NOT (position((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), unhex({not_contains_0:String})) > 0)
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({matches:String}))
  AND NOT (match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({not_matches_0:String})))
  AND mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_0_key:String})) AND mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_0_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))] = unhex({attribute_0:String})
  AND mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_1_key:String})) AND true
  AND mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_2_key:String})) AND match(if(isValidUTF8(mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))]), mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))], arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_2_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))], '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({attribute_2:String}))
  AND mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_3_key:String})) AND mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_3_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))] IN (unhex({attribute_3_0:String}), unhex({attribute_3_1:String}))
  AND mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_4_key:String})) AND (match(mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_4_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))], unhex({attribute_4_number:String})) AND toDecimal256OrZero(mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_4_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))], 36) >= toDecimal256OrZero(unhex({attribute_4:String}), 36))
  AND NOT (mapContains((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))), unhex({attribute_5_key:String})) AND mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = unhex({attribute_5_key:String}), mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))] = unhex({attribute_5:String}))
ORDER BY Timestamp, (concat(TraceId, ':', SpanId))
LIMIT {limit:UInt64}
)
-- after = 1795244520123456789
-- after_id = 617c62
-- application_0 = 6f7264657273
-- application_pattern_1_first = 62696c6c
-- attribute_0 = 3432
-- attribute_0_key = 637573746f6d6572
-- attribute_1_key = 7265747279
-- attribute_2 = 5c4171
-- attribute_2_key = 7175657565
-- attribute_3_0 = 6575
-- attribute_3_1 = 7573
-- attribute_3_key = 726567696f6e
-- attribute_4 = 39392e35
-- attribute_4_key = 616d6f756e74
-- attribute_4_number = 5c415b2b2d5d3f285b302d395d7b312c31387d285c2e5b302d395d7b302c31387d293f7c5c2e5b302d395d7b312c31387d29285b65455d5b2b2d5d3f28303f5b302d395d7c315b302d385d29293f5c7a
-- attribute_5 = 796573
-- attribute_5_key = 70726f6265
-- before = 1795244520123456799
-- contains = 313030252022676f6e6522
-- environment_0 = 70726f64756374696f6e
-- error_type_0 = 54696d656f7574
-- error_type_1 = 69742773
-- limit = 1001
-- matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- max_duration = 60000000000
-- min_duration = 100000000
-- not_application_0 = 6f72646572732d6d6f636b
-- not_contains_0 = 7265747279206c61746572
-- not_environment_pattern_0_first = 74657374
-- not_error_type_0 = 43616e63656c6c6564
-- not_matches_0 = 5c416865616c7468
-- not_route_0 = 6865616c7468
-- not_route_pattern_1_last = 2d70726f6265
-- route_pattern_1_0 = 746f
-- route_pattern_1_last = 657270
-- route_pattern_2_0 = 62
-- route_pattern_2_first = 61
-- route_pattern_2_last = 63

WITH toUnixTimestamp64Nano(now64(9)) AS tocsin_now
SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    tocsin_now,
    groupArray(tocsin_bucket),
    groupArray(tocsin_count),
    groupArray(tocsin_checksum)
FROM (
SELECT
    intDiv(toUnixTimestamp64Nano(Timestamp), {width:Int64}) * {width:Int64} AS tocsin_bucket,
    count() AS tocsin_count,
    sum(cityHash64((concat(TraceId, ':', SpanId)))) AS tocsin_checksum
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND true
GROUP BY tocsin_bucket
)
-- from = 1795244520123456789
-- to = 1795244520123456799
-- width = 60000000000

WITH toUnixTimestamp64Nano(now64(9)) AS tocsin_now
SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    tocsin_now,
    groupArray(tocsin_bucket),
    groupArray(tocsin_count),
    groupArray(tocsin_checksum)
FROM (
SELECT
    intDiv(toUnixTimestamp64Nano(Timestamp), {width:Int64}) * {width:Int64} AS tocsin_bucket,
    count() AS tocsin_count,
    sum(cityHash64((concat(TraceId, ':', SpanId)))) AS tocsin_checksum
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(tocsin_now - {settle:Int64}, 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano(tocsin_now - {settle:Int64}, 'UTC')
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
GROUP BY tocsin_bucket
)
-- from = 1795244520123456789
-- settle = 1000000000
-- width = 60000000000

SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(tocsin_range),
    groupArray(tocsin_rows)
FROM (
SELECT toUInt32(0) AS tocsin_range, count() AS tocsin_rows
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')
UNION ALL
SELECT toUInt32(1) AS tocsin_range, count() AS tocsin_rows
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456804), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano(toInt64(1795244520123456804), 'UTC')
)

SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(tocsin_range),
    groupArray(tocsin_rows)
FROM (
SELECT toUInt32(0) AS tocsin_range, count() AS tocsin_rows
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')
UNION ALL
SELECT toUInt32(1) AS tocsin_range, count() AS tocsin_rows
FROM otel_traces
WHERE (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456804), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano(toInt64(1795244520123456799), 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano(toInt64(1795244520123456804), 'UTC')
)
