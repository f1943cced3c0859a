WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    toString(unhex('64656661756c74')) AS tocsin_tenant,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED') AS tocsin_status,
    '' AS tocsin_environment,
    toString(ServiceName) AS tocsin_application,
    '' AS tocsin_route,
    toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))) AS tocsin_error_type,
    '' AS tocsin_attribute,
    '' AS tocsin_group,
    roundDown(toInt64(least(Duration, 9223372036854775807)), [toInt64(0), toInt64(1000000000), toInt64(2000000000)]) AS tocsin_least,
    roundDown(tocsin_ended, [toInt64(1795244460123456789), toInt64(1795244490123456789)]) AS tocsin_stretch,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 2)
FROM otel_traces
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240860123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_attribute, tocsin_group, tocsin_least, tocsin_stretch),
    (tocsin_tenant, tocsin_attribute))
-- from = 1795244460123456789
-- start = 1795240860123456789
-- to = 1795244520123456789

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    toString(unhex('64656661756c74')) AS tocsin_tenant,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED') AS tocsin_status,
    '' AS tocsin_environment,
    toString(ServiceName) AS tocsin_application,
    '' AS tocsin_route,
    '' AS tocsin_error_type,
    tocsin_of AS tocsin_attribute,
    arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = tocsin_of, mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))]])[1] AS tocsin_group,
    toInt64(0) AS tocsin_least,
    roundDown(tocsin_ended, [toInt64(1795244460123456789), toInt64(1795244490123456789)]) AS tocsin_stretch,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 2)
FROM otel_traces
ARRAY JOIN [unhex({attribute_0:String}), unhex({attribute_1:String})] AS tocsin_of
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240860123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_attribute, tocsin_group, tocsin_least, tocsin_stretch),
    (tocsin_tenant, tocsin_attribute))
-- attribute_0 = 637573746f6d6572
-- attribute_1 = 69742773
-- from = 1795244460123456789
-- start = 1795240860123456789
-- to = 1795244520123456789

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', ''][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE', ''][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE', ''][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE', ''][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 2)
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(unhex('64656661756c74') = unhex({w1_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w1_application_0:String})))
  AND Duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240620123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65
-- w1_application_0 = 73686f70
-- w1_from = 1795244220123456789
-- w1_min_duration = 100000000
-- w1_start = 1795240620123456789
-- w1_tenant = 6f2768617261

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    toUnixTimestamp64Nano(Timestamp),
    (concat(TraceId, ':', SpanId)),
    (coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment'])),
    ServiceName,
    SpanName,
    if((StatusCode IN ('Error', 'STATUS_CODE_ERROR')), 'FAILED', 'COMPLETED'),
    toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))),
    Duration,
    (coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type'])),
    (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))),
    left((coalesce(nullIf(SpanAttributes['exception.stacktrace'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.stacktrace'], Events.Attributes)))), 32768),
    TraceId,
    (mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String}))
        AND (SpanName, tocsin_ended, toUnixTimestamp64Nano(Timestamp)) IN ((unhex({w0_group_0:String}), {w0_ended_0:Int64}, {w0_start_0:Int64})), 2, 0),
    if(unhex('64656661756c74') = unhex({w1_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w1_application_0:String})))
  AND Duration >= {w1_min_duration:Int64}
        AND ('', tocsin_ended, toUnixTimestamp64Nano(Timestamp)) IN ((unhex({w1_group_0:String}), {w1_ended_0:Int64}, {w1_start_0:Int64})), 4, 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456780), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
ORDER BY tocsin_window, (concat(TraceId, ':', SpanId)) DESC
LIMIT 1 BY tocsin_window, if(['ROUTE', ''][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE', ''][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE', ''][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE', ''][tocsin_window + 1] = 'ROUTE', toString(SpanName), ''))))
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- start = 1795244520123456780
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_ended_0 = 1795244520123456788
-- w0_from = 1795244460123456789
-- w0_group_0 = 69742773
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795244520123456784
-- w0_start_0 = 1795244520123456784
-- w0_tenant = 61636d65
-- w1_application_0 = 73686f70
-- w1_ended_0 = 1795244520123456787
-- w1_from = 1795244220123456789
-- w1_group_0 = 
-- w1_min_duration = 100000000
-- w1_start = 1795244520123456780
-- w1_start_0 = 1795244520123456780
-- w1_tenant = 6f2768617261

SELECT
    concat(toString(serverUUID()), ' ', displayName()),
    groupArray(tocsin_bucket),
    groupArray(tocsin_count),
    groupArray(tocsin_before)
FROM (
WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    intDiv(tocsin_ended, {width:Int64}) * {width:Int64} AS tocsin_bucket,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_count,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_ended < {cut:Int64})) AS tocsin_before
FROM otel_traces
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240020123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND tocsin_ended - toUnixTimestamp64Nano(Timestamp) <= {longest:Int64}
  AND true
GROUP BY tocsin_bucket
)
-- cut = 1795244510123456789
-- from = 1795243620123456789
-- longest = 3600000000000
-- start = 1795240020123456789
-- to = 1795244520123456789
-- width = 10000000000

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE'][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_code % 2 = 0)) AS tocsin_count,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_volume,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_code % 2 = 0 AND tocsin_ended >= [toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_count,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_ended >= [toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_volume,
    toInt64(0),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0), 1),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0), 2)
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND true
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String})))), if((StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_observed_matches:String})), 2, 1), 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240860123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244460123456789
-- limit = 1001
-- start = 1795240860123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_observed_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65

SELECT
    tocsin_window,
    tocsin_group,
    toInt64(countIf(tocsin_observed)) AS tocsin_count,
    toInt64(count()) AS tocsin_volume,
    toInt64(0), toInt64(0),
    arraySort(groupArray(tocsin_longest))[intDiv(count() * [toInt64(95)][tocsin_window + 1] + 99, 100)],
    tupleElement(max(tocsin_newest), 1),
    tupleElement(max(tocsin_newest), 2)
FROM (
    WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if([''][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if([''][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if([''][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if([''][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
        max(toInt64(least(Duration, 9223372036854775807))) AS tocsin_longest,
        max(tocsin_code % 2 = 0) AS tocsin_observed,
        maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0) AS tocsin_newest
    FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})))
  AND Duration >= {w0_min_duration:Int64}, if(Duration >= {w0_least:Int64}, 2, 1), 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240620123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({any_application_0:String})))
    GROUP BY tocsin_window, tocsin_group, (concat(TraceId, ':', SpanId)))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 73686f70
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- to = 1795244520123456789
-- w0_application_0 = 73686f70
-- w0_from = 1795244220123456789
-- w0_least = 2000000000
-- w0_min_duration = 100000000
-- w0_start = 1795240620123456789
-- w0_tenant = 6f2768617261

SELECT
    tocsin_window, tocsin_group, tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0), tocsin_ended_last, tocsin_start_last
FROM (
    WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if(['ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE'][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
        toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_count,
        max(tocsin_ended) AS tocsin_ended_last,
        max(toUnixTimestamp64Nano(Timestamp)) AS tocsin_start_last
    FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240860123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({any_application_0:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
    GROUP BY tocsin_window, tocsin_group
    ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
    LIMIT {limit:UInt64} BY tocsin_window)
UNION ALL
SELECT toUInt16(65535), concat(toString(serverUUID()), ' ', displayName()), toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0)
-- any_application_0 = 6f7264657273
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244460123456789
-- limit = 1001
-- start = 1795240860123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ATTRIBUTE', toString(arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = ['', unhex({w1_group_key:String})][tocsin_window + 1], mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))]])[1]), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ROUTE', toString(SpanName), ''))))) AS tocsin_group,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 2)
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(unhex('64656661756c74') = unhex({w1_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w1_application_0:String})))
  AND Duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240620123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65
-- w1_application_0 = 73686f70
-- w1_from = 1795244220123456789
-- w1_group_key = 69742773
-- w1_min_duration = 100000000
-- w1_start = 1795240620123456789
-- w1_tenant = 6f2768617261

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ATTRIBUTE', toString(arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))))[arrayLastIndex(tocsin_key -> tocsin_key = ['', unhex({w1_group_key:String})][tocsin_window + 1], mapKeys((mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind)))))]])[1]), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ROUTE', toString(SpanName), ''))))) AS tocsin_group,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(Timestamp))), 2)
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(unhex('64656661756c74') = unhex({w1_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w1_application_0:String})))
  AND Duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240620123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
HAVING tocsin_window = 0 AND tocsin_count >= 3
    OR tocsin_window = 1
    OR tocsin_window = 0 AND CRC32(tocsin_group) IN (660289018, 1826356594)
    OR tocsin_window = 0 AND length(tocsin_group) > 128
ORDER BY tocsin_window, (tocsin_window = 0 AND CRC32(tocsin_group) IN (660289018, 1826356594) OR tocsin_window = 0 AND length(tocsin_group) > 128) DESC, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65
-- w1_application_0 = 73686f70
-- w1_from = 1795244220123456789
-- w1_group_key = 69742773
-- w1_min_duration = 100000000
-- w1_start = 1795240620123456789
-- w1_tenant = 6f2768617261

WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_code % 2 = 0)) AS tocsin_count,
    toInt64(uniqExact((concat(TraceId, ':', SpanId)))) AS tocsin_volume,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_code % 2 = 0 AND tocsin_ended >= [toInt64(1795244510123456789), toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_count,
    toInt64(uniqExactIf((concat(TraceId, ':', SpanId)), tocsin_ended >= [toInt64(1795244510123456789), toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_volume,
    toInt64(0),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0), 1),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0), 2)
FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND true
  AND (ServiceName IN (unhex({w0_application_0:String})) OR (startsWith(ServiceName, unhex({w0_application_pattern_1_first:String})))), if((StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_observed_matches:String})), 2, 1), 0),
    if(unhex('64656661756c74') = unhex({w1_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND true
  AND (ServiceName IN (unhex({w1_application_0:String})) OR (startsWith(ServiceName, unhex({w1_application_pattern_1_first:String})))), if((StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND match(if(isValidUTF8((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes))))), (coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll((coalesce(nullIf(StatusMessage, ''), nullIf(SpanAttributes['exception.message'], ''), arrayFirst(x -> x != '', arrayMap(x -> x['exception.message'], Events.Attributes)))), '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w1_observed_matches:String})), 4, 3), 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240860123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (ServiceName IN (unhex({any_application_0:String})) OR (startsWith(ServiceName, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
HAVING tocsin_window = 0 AND tocsin_count >= 3 AND tocsin_volume >= 20 AND tocsin_count * 100000 >= 12500 * tocsin_volume AND tocsin_short_count > 0 AND tocsin_short_count * 100000 >= 12500 * tocsin_short_volume
    OR tocsin_window = 1 AND tocsin_count >= 3 AND tocsin_volume >= 20 AND tocsin_count * 100000 >= 12500 * tocsin_volume AND tocsin_short_count > 0 AND tocsin_short_count * 100000 >= 12500 * tocsin_short_volume
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244460123456789
-- limit = 1001
-- start = 1795240860123456789
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_observed_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65
-- w1_application_0 = 6f7264657273
-- w1_application_pattern_1_first = 62696c6c
-- w1_from = 1795244460123456789
-- w1_observed_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w1_start = 1795240860123456789
-- w1_tenant = 61636d65

SELECT
    tocsin_window,
    tocsin_group,
    toInt64(countIf(tocsin_observed)) AS tocsin_count,
    toInt64(count()) AS tocsin_volume,
    toInt64(0), toInt64(0),
    arraySort(groupArray(tocsin_longest))[intDiv(count() * [toInt64(95)][tocsin_window + 1] + 99, 100)],
    tupleElement(max(tocsin_newest), 1),
    tupleElement(max(tocsin_newest), 2)
FROM (
    WITH ifNull(toUnixTimestamp64Nano(multiIf((Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))) < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), (Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))))), toUnixTimestamp64Nano(Timestamp)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if([''][tocsin_window + 1] = 'ERROR_TYPE', toString((coalesce(nullIf(SpanAttributes['exception.type'], ''), nullIf(SpanAttributes['error.type'], ''), nullIf(arrayFirst(x -> x != '', arrayMap(x -> x['exception.type'], Events.Attributes)), ''), ResourceAttributes['exception.type']))), if([''][tocsin_window + 1] = 'ENVIRONMENT', toString((coalesce(nullIf(ResourceAttributes['deployment.environment.name'], ''), ResourceAttributes['deployment.environment']))), if([''][tocsin_window + 1] = 'APPLICATION', toString(ServiceName), if([''][tocsin_window + 1] = 'ROUTE', toString(SpanName), '')))) AS tocsin_group,
        max(toInt64(least(Duration, 9223372036854775807))) AS tocsin_longest,
        max(tocsin_code % 2 = 0) AS tocsin_observed,
        maxIf((tocsin_ended, toUnixTimestamp64Nano(Timestamp)), tocsin_code % 2 = 0) AS tocsin_newest
    FROM otel_traces
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(unhex('64656661756c74') = unhex({w0_tenant:String})
        AND Timestamp >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({w0_application_0:String})))
  AND Duration >= {w0_min_duration:Int64}, if(Duration >= {w0_least:Int64}, 2, 1), 0)]) AS tocsin_code
WHERE false
  AND (toDateTime(Timestamp) >= toDateTime(fromUnixTimestamp64Nano(toInt64(1795240620123456789), 'UTC')) AND toDateTime(Timestamp) <= toDateTime(fromUnixTimestamp64Nano(toInt64(1795244520123456789), 'UTC')))
  AND Timestamp >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND Timestamp < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND NOT (StatusCode IN ('Error', 'STATUS_CODE_ERROR'))
  AND (ServiceName IN (unhex({any_application_0:String})))
    GROUP BY tocsin_window, tocsin_group, (concat(TraceId, ':', SpanId)))
GROUP BY tocsin_window, tocsin_group
HAVING tocsin_window = 0 AND tocsin_count >= 2 AND tocsin_volume >= 20 AND tocsin_count > tocsin_volume - intDiv(tocsin_volume * 95 + 99, 100)
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 73686f70
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- to = 1795244520123456789
-- w0_application_0 = 73686f70
-- w0_from = 1795244220123456789
-- w0_least = 2000000000
-- w0_min_duration = 100000000
-- w0_start = 1795240620123456789
-- w0_tenant = 6f2768617261
