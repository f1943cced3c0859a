CREATE TABLE IF NOT EXISTS exchanges
(
    tenant_id      LowCardinality(String),
    start_time     DateTime64(9, 'UTC'),
    environment    LowCardinality(String),
    application_id LowCardinality(String),
    route_id       LowCardinality(String),
    execution_id   String,
    end_time       Nullable(DateTime64(9, 'UTC')),
    duration       UInt64 COMMENT 'nanoseconds from start to end; 0 while RUNNING',
    status         LowCardinality(String) COMMENT 'RUNNING, COMPLETED or FAILED',
    error_type     LowCardinality(String),
    error_message  String,
    error_stack    String,
    correlation_id String,
    attributes     Map(String, String)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(start_time)
PRIMARY KEY (start_time, tenant_id)
ORDER BY (start_time, tenant_id, environment, application_id, route_id, execution_id)
