WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    toString(tenant_id) AS tocsin_tenant,
    if((status = 'FAILED'), 'FAILED', 'COMPLETED') AS tocsin_status,
    '' AS tocsin_environment,
    toString(application_id) AS tocsin_application,
    '' AS tocsin_route,
    toString(error_type) AS tocsin_error_type,
    '' AS tocsin_attribute,
    '' AS tocsin_group,
    roundDown(toInt64(least(duration, 9223372036854775807)), [toInt64(0), toInt64(1000000000), toInt64(2000000000)]) AS tocsin_least,
    roundDown(tocsin_ended, [toInt64(1795244460123456789), toInt64(1795244490123456789)]) AS tocsin_stretch,
    toInt64(uniqExact(execution_id)),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 2)
FROM exchanges
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (status = 'FAILED')
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_attribute, tocsin_group, tocsin_least, tocsin_stretch),
    (tocsin_tenant, tocsin_attribute))
-- from = 1795244460123456789
-- start = 1795240860123456789
-- tenants = 61636d65006f2768617261
-- to = 1795244520123456789

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    toString(tenant_id) AS tocsin_tenant,
    if((status = 'FAILED'), 'FAILED', 'COMPLETED') AS tocsin_status,
    '' AS tocsin_environment,
    toString(application_id) AS tocsin_application,
    '' AS tocsin_route,
    '' AS tocsin_error_type,
    tocsin_of AS tocsin_attribute,
    arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues(attributes)[arrayLastIndex(tocsin_key -> tocsin_key = tocsin_of, mapKeys(attributes))]])[1] AS tocsin_group,
    toInt64(0) AS tocsin_least,
    roundDown(tocsin_ended, [toInt64(1795244460123456789), toInt64(1795244490123456789)]) AS tocsin_stretch,
    toInt64(uniqExact(execution_id)),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 2)
FROM exchanges
ARRAY JOIN [unhex({attribute_0:String}), unhex({attribute_1:String})] AS tocsin_of
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (status = 'FAILED')
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_attribute, tocsin_group, tocsin_least, tocsin_stretch),
    (tocsin_tenant, tocsin_attribute))
-- attribute_0 = 637573746f6d6572
-- attribute_1 = 69742773
-- from = 1795244460123456789
-- start = 1795240860123456789
-- tenants = 61636d65006f2768617261
-- to = 1795244520123456789

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', ''][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE', ''][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE', ''][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE', ''][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
    toInt64(uniqExact(execution_id)) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 2)
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(tenant_id = unhex({w1_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w1_application_0:String})))
  AND duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- tenants = 61636d65006f2768617261
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

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    toUnixTimestamp64Nano(start_time),
    execution_id,
    environment,
    application_id,
    route_id,
    if((status = 'FAILED'), 'FAILED', 'COMPLETED'),
    toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)),
    duration,
    error_type,
    error_message,
    left(error_stack, 32768),
    correlation_id,
    attributes
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String}))
        AND (route_id, tocsin_ended, toUnixTimestamp64Nano(start_time)) IN ((unhex({w0_group_0:String}), {w0_ended_0:Int64}, {w0_start_0:Int64})), 2, 0),
    if(tenant_id = unhex({w1_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w1_application_0:String})))
  AND duration >= {w1_min_duration:Int64}
        AND ('', tocsin_ended, toUnixTimestamp64Nano(start_time)) IN ((unhex({w1_group_0:String}), {w1_ended_0:Int64}, {w1_start_0:Int64})), 4, 0)]) AS tocsin_code
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
ORDER BY tocsin_window, execution_id DESC
LIMIT 1 BY tocsin_window, if(['ROUTE', ''][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE', ''][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE', ''][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE', ''][tocsin_window + 1] = 'ROUTE', toString(route_id), ''))))
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- start = 1795244520123456780
-- tenants = 61636d65006f2768617261
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
WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    intDiv(tocsin_ended, {width:Int64}) * {width:Int64} AS tocsin_bucket,
    toInt64(uniqExact(execution_id)) AS tocsin_count,
    toInt64(uniqExactIf(execution_id, tocsin_ended < {cut:Int64})) AS tocsin_before
FROM exchanges
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND tocsin_ended - toUnixTimestamp64Nano(start_time) <= {longest:Int64}
  AND true
GROUP BY tocsin_bucket
)
-- cut = 1795244510123456789
-- from = 1795243620123456789
-- longest = 3600000000000
-- start = 1795240020123456789
-- tenants = 61636d65006f2768617261
-- to = 1795244520123456789
-- width = 10000000000

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE'][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
    toInt64(uniqExactIf(execution_id, tocsin_code % 2 = 0)) AS tocsin_count,
    toInt64(uniqExact(execution_id)) AS tocsin_volume,
    toInt64(uniqExactIf(execution_id, tocsin_code % 2 = 0 AND tocsin_ended >= [toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_count,
    toInt64(uniqExactIf(execution_id, tocsin_ended >= [toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_volume,
    toInt64(0),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0), 1),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0), 2)
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND true
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String})))), if((status = 'FAILED')
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_observed_matches:String})), 2, 1), 0)]) AS tocsin_code
WHERE tenant_id = unhex({tenant:String})
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244460123456789
-- limit = 1001
-- start = 1795240860123456789
-- tenant = 61636d65
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
    WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if([''][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if([''][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if([''][tocsin_window + 1] = 'APPLICATION', toString(application_id), if([''][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
        max(toInt64(least(duration, 9223372036854775807))) AS tocsin_longest,
        max(tocsin_code % 2 = 0) AS tocsin_observed,
        maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0) AS tocsin_newest
    FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})))
  AND duration >= {w0_min_duration:Int64}, if(duration >= {w0_least:Int64}, 2, 1), 0)]) AS tocsin_code
WHERE tenant_id = unhex({tenant:String})
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({any_application_0:String})))
    GROUP BY tocsin_window, tocsin_group, execution_id)
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 73686f70
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- tenant = 6f2768617261
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
    WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if(['ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE'][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
        toInt64(uniqExact(execution_id)) AS tocsin_count,
        max(tocsin_ended) AS tocsin_ended_last,
        max(toUnixTimestamp64Nano(start_time)) AS tocsin_start_last
    FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0)]) AS tocsin_code
WHERE tenant_id = unhex({tenant:String})
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND (status = 'FAILED')
  AND (application_id IN (unhex({any_application_0:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
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
-- tenant = 61636d65
-- to = 1795244520123456789
-- w0_application_0 = 6f7264657273
-- w0_application_pattern_1_first = 62696c6c
-- w0_from = 1795244460123456789
-- w0_matches = 5b5c787b35327d5c787b37327d5d5b5c787b34357d5c787b36357d5d5b5c787b34367d5c787b36367d5d5b5c787b35357d5c787b37357d5d5b5c787b35337d5c787b37337d5c787b3137467d5d5b5c787b34357d5c787b36357d5d5b5c787b34347d5c787b36347d5d283f3a5b5e5c6e5d292a5b5c787b33307d2d5c787b33397d5d5c7a
-- w0_start = 1795240860123456789
-- w0_tenant = 61636d65

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ATTRIBUTE', toString(arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues(attributes)[arrayLastIndex(tocsin_key -> tocsin_key = ['', unhex({w1_group_key:String})][tocsin_window + 1], mapKeys(attributes))]])[1]), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ROUTE', toString(route_id), ''))))) AS tocsin_group,
    toInt64(uniqExact(execution_id)) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 2)
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(tenant_id = unhex({w1_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w1_application_0:String})))
  AND duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 6f7264657273
-- any_application_1 = 73686f70
-- any_application_pattern_0_first = 62696c6c
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- tenants = 61636d65006f2768617261
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

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ATTRIBUTE', toString(arrayMap(tocsin_value -> if(length(tocsin_value) <= 256, tocsin_value, concat('sha-256 of a long value: ', lower(hex(SHA256(tocsin_value))))), [mapValues(attributes)[arrayLastIndex(tocsin_key -> tocsin_key = ['', unhex({w1_group_key:String})][tocsin_window + 1], mapKeys(attributes))]])[1]), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE', 'ATTRIBUTE'][tocsin_window + 1] = 'ROUTE', toString(route_id), ''))))) AS tocsin_group,
    toInt64(uniqExact(execution_id)) AS tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 1),
    tupleElement(max((tocsin_ended, toUnixTimestamp64Nano(start_time))), 2)
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String}))))
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_matches:String})), 2, 0),
    if(tenant_id = unhex({w1_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w1_application_0:String})))
  AND duration >= {w1_min_duration:Int64}, 4, 0)]) AS tocsin_code
WHERE tenant_id IN splitByChar('\0', unhex({tenants:String}))
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String}), unhex({any_application_1:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
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
-- tenants = 61636d65006f2768617261
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

WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
SELECT
    toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
    if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'APPLICATION', toString(application_id), if(['ROUTE', 'ROUTE'][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
    toInt64(uniqExactIf(execution_id, tocsin_code % 2 = 0)) AS tocsin_count,
    toInt64(uniqExact(execution_id)) AS tocsin_volume,
    toInt64(uniqExactIf(execution_id, tocsin_code % 2 = 0 AND tocsin_ended >= [toInt64(1795244510123456789), toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_count,
    toInt64(uniqExactIf(execution_id, tocsin_ended >= [toInt64(1795244510123456789), toInt64(1795244510123456789)][tocsin_window + 1])) AS tocsin_short_volume,
    toInt64(0),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0), 1),
    tupleElement(maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0), 2)
FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND true
  AND (application_id IN (unhex({w0_application_0:String})) OR (startsWith(application_id, unhex({w0_application_pattern_1_first:String})))), if((status = 'FAILED')
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w0_observed_matches:String})), 2, 1), 0),
    if(tenant_id = unhex({w1_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w1_start:Int64}, 'UTC')
        AND tocsin_ended >= {w1_from:Int64}
        AND true
  AND (application_id IN (unhex({w1_application_0:String})) OR (startsWith(application_id, unhex({w1_application_pattern_1_first:String})))), if((status = 'FAILED')
  AND match(if(isValidUTF8(error_message), error_message, arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\xEF\xBF\xBD'), extractAll(error_message, '[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C')))), unhex({w1_observed_matches:String})), 4, 3), 0)]) AS tocsin_code
WHERE tenant_id = unhex({tenant:String})
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND true
  AND (application_id IN (unhex({any_application_0:String})) OR (startsWith(application_id, unhex({any_application_pattern_0_first:String}))))
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
-- tenant = 61636d65
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
    WITH ifNull(toUnixTimestamp64Nano(multiIf(end_time > toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), toDateTime64('2262-04-11 23:47:16', 0, 'UTC'), end_time < toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), end_time)), toUnixTimestamp64Nano(start_time)) AS tocsin_ended
    SELECT
        toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window,
        if([''][tocsin_window + 1] = 'ERROR_TYPE', toString(error_type), if([''][tocsin_window + 1] = 'ENVIRONMENT', toString(environment), if([''][tocsin_window + 1] = 'APPLICATION', toString(application_id), if([''][tocsin_window + 1] = 'ROUTE', toString(route_id), '')))) AS tocsin_group,
        max(toInt64(least(duration, 9223372036854775807))) AS tocsin_longest,
        max(tocsin_code % 2 = 0) AS tocsin_observed,
        maxIf((tocsin_ended, toUnixTimestamp64Nano(start_time)), tocsin_code % 2 = 0) AS tocsin_newest
    FROM exchanges
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    if(tenant_id = unhex({w0_tenant:String})
        AND start_time >= fromUnixTimestamp64Nano({w0_start:Int64}, 'UTC')
        AND tocsin_ended >= {w0_from:Int64}
        AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({w0_application_0:String})))
  AND duration >= {w0_min_duration:Int64}, if(duration >= {w0_least:Int64}, 2, 1), 0)]) AS tocsin_code
WHERE tenant_id = unhex({tenant:String})
  AND (status IN ('COMPLETED', 'FAILED'))
  AND start_time >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND NOT (status = 'FAILED')
  AND (application_id IN (unhex({any_application_0:String})))
    GROUP BY tocsin_window, tocsin_group, execution_id)
GROUP BY tocsin_window, tocsin_group
HAVING tocsin_window = 0 AND tocsin_count >= 2 AND tocsin_volume >= 20 AND tocsin_count > tocsin_volume - intDiv(tocsin_volume * 95 + 99, 100)
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window
-- any_application_0 = 73686f70
-- from = 1795244220123456789
-- limit = 1001
-- start = 1795240620123456789
-- tenant = 6f2768617261
-- to = 1795244520123456789
-- w0_application_0 = 73686f70
-- w0_from = 1795244220123456789
-- w0_least = 2000000000
-- w0_min_duration = 100000000
-- w0_start = 1795240620123456789
-- w0_tenant = 6f2768617261
