//! Blocks read, written and found in memory (`pg_stat_io` since 16, with bytes since 18;
//! `pg_stat_database`; `pg_statio_all_tables`).

use pgclinic_model::document::{SignKind, SignUnit, SignValue};

use super::failed_writes::TRANSACTIONS;
use super::{RESET_OF_DATABASE, of};
use crate::assess::Sample;
use crate::facts::ServerFacts;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Family, Gather, Sign, Source};

pub(super) const SIGNS: &[&Sign] = &[
    &HIT_RATIO,
    &BLOCKS_HIT,
    &BLOCKS_READ,
    &READS,
    &READ_BYTES,
    &READ_TIME,
    &WRITES,
    &WRITE_BYTES,
    &WRITE_TIME,
    &EXTEND_BYTES,
    &HITS,
    &EVICTIONS,
    &FSYNCS,
    &RELATIONS,
];

/// Relations whose blocks are counted; those are shown that read most.
const RELATIONS_MAX: usize = 20;

static IO: Probe = Probe {
    name: "io",
    labels: &["backend_type", "object", "context"],
    columns: &[
        "reads",
        "read bytes",
        "read seconds",
        "writes",
        "write bytes",
        "write seconds",
        "extend bytes",
        "hits",
        "evictions",
        "fsyncs",
    ],
    has_reset: true,
    needs: &[Need::Since(16, "pg_stat_io")],
    sql: io,
    cost: "Some 100 rows of counters from shared memory.",
    ..Probe::PLAIN
};

/// Since 18 requests may be larger than a block, and bytes are counted apart.
fn io(facts: &ServerFacts) -> String {
    let bytes = |operation: &str, column: &str| {
        if facts.major >= 18 {
            column.to_owned()
        } else {
            format!("{operation} * op_bytes")
        }
    };
    // Times of WAL are counted where another setting says so, and are zeros else.
    let seconds = |column: &str| match facts.shown("track_wal_io_timing") {
        Some("on") => format!("{column} / 1000"),
        _ => format!("CASE WHEN object <> 'wal' THEN {column} / 1000 END"),
    };
    format!(
        "SELECT backend_type, object, context, reads, {}, {}, writes, {}, {}, {}, \
         hits, evictions, fsyncs, stats_reset FROM pg_stat_io ORDER BY 1, 2, 3",
        bytes("reads", "read_bytes"),
        seconds("read_time"),
        bytes("writes", "write_bytes"),
        seconds("write_time"),
        bytes("extends", "extend_bytes"),
    )
}

static BLOCKS: Probe = Probe {
    name: "blocks of relations",
    labels: &["database", "relation"],
    columns: &["read"],
    has_reset: true,
    sql: |_| {
        format!(
            "SELECT current_database(), schemaname || '.' || relname, coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0) \
             + coalesce(toast_blks_read, 0) + coalesce(tidx_blks_read, 0), {RESET_OF_DATABASE} FROM pg_statio_all_tables \
             ORDER BY 3 DESC, 2 LIMIT {RELATIONS_MAX}"
        )
    },
    needs: &[Need::Counts],
    every_s: 60,
    cost: "One row of pg_class and of the statistics for each table and index of the database, once a minute.",
    ..Probe::PLAIN
};

/// What most signs of `pg_stat_io` have.
const OF_IO: Sign = Sign {
    family: Family::Io,
    kind: SignKind::Counter,
    settled_by: "pgclinic lab run async-io; EXPLAIN (ANALYZE, BUFFERS) of the statement.",
    ..Sign::PLAIN
};

const HIT_RATIO: Sign = Sign {
    name: "hit-ratio",
    metric: "pgclinic_hit_ratio",
    summary: "blocks found in shared buffers, of all that were asked for since the sample before",
    kind: SignKind::Gauge,
    unit: SignUnit::Ratio,
    source: Source::Computed(&[&TRANSACTIONS], hit_ratio),
    labels: &["database"],
    gather: Gather::Min,
    normal: "Above 0.99 where the working set fits; for a data warehouse any figure.",
    meaning: "It says nothing alone: what is missed may lie in the page cache, and a scan of a cold table lowers it. That is why no alert uses it.",
    settled_by: "read-time says what the misses cost.",
    ..OF_IO
};

const BLOCKS_HIT: Sign = Sign {
    name: "blocks-hit",
    metric: "pgclinic_blocks_hit_total",
    summary: "blocks found in shared buffers",
    source: Source::Column(&TRANSACTIONS, "blocks hit"),
    normal: "Most of what is asked for.",
    meaning: "Work of the processor alone.",
    ..OF_IO
};

const BLOCKS_READ: Sign = Sign {
    name: "blocks-read",
    metric: "pgclinic_blocks_read_total",
    summary: "blocks that were not in shared buffers",
    source: Source::Column(&TRANSACTIONS, "blocks read"),
    normal: "What the disk and the page cache serve without anybody waiting.",
    meaning: "The working set is larger than shared_buffers, or a plan reads far more than it needs.",
    ..OF_IO
};

const READS: Sign = Sign {
    name: "io-reads",
    metric: "pgclinic_io_reads_total",
    summary: "requests to read, by kind of process, object and context",
    source: Source::Column(&IO, "reads"),
    normal: "Client backends, context normal or bulkread.",
    meaning: "Autovacuum far ahead of clients: maintenance competes with queries.",
    ..OF_IO
};

const READ_BYTES: Sign = Sign {
    name: "io-read-bytes",
    metric: "pgclinic_io_read_bytes_total",
    summary: "bytes read, by kind of process, object and context",
    unit: SignUnit::Bytes,
    source: Source::Column(&IO, "read bytes"),
    normal: "Below what the disk gives.",
    meaning: "Bytes by requests is the size of a request: 8 kB means that nothing was combined.",
    ..OF_IO
};

const READ_TIME: Sign = Sign {
    name: "io-read-time",
    metric: "pgclinic_io_read_seconds_total",
    summary: "seconds spent waiting for reads; a second each second is one process that only waits",
    unit: SignUnit::Seconds,
    source: Source::Column(&IO, "read seconds"),
    needs: &[Need::IoTiming],
    normal: "Below 0.1 s for each second and process.",
    meaning: "What the misses cost; by requests, the latency of one.",
    ..OF_IO
};

const WRITES: Sign = Sign {
    name: "io-writes",
    metric: "pgclinic_io_writes_total",
    summary: "requests to write, by kind of process, object and context",
    source: Source::Column(&IO, "writes"),
    normal: "The checkpointer and the background writer.",
    meaning: "Client backends that write in context normal find no clean buffer: shared_buffers is small, or the background writer too slow.",
    ..OF_IO
};

const WRITE_BYTES: Sign = Sign {
    name: "io-write-bytes",
    metric: "pgclinic_io_write_bytes_total",
    summary: "bytes written, by kind of process, object and context",
    unit: SignUnit::Bytes,
    source: Source::Column(&IO, "write bytes"),
    normal: "As for io-writes.",
    meaning: "As for io-writes; since 18 object wal is among them.",
    ..OF_IO
};

const WRITE_TIME: Sign = Sign {
    name: "io-write-time",
    metric: "pgclinic_io_write_seconds_total",
    summary: "seconds spent writing",
    unit: SignUnit::Seconds,
    source: Source::Column(&IO, "write seconds"),
    needs: &[Need::IoTiming],
    normal: "Small: a write goes to the page cache.",
    meaning: "Time in writes means that the kernel makes writers wait, as at vm.dirty_ratio.",
    ..OF_IO
};

const EXTEND_BYTES: Sign = Sign {
    name: "io-extend-bytes",
    metric: "pgclinic_io_extend_bytes_total",
    summary: "bytes that relations grew by",
    unit: SignUnit::Bytes,
    source: Source::Column(&IO, "extend bytes"),
    normal: "The growth of the data.",
    meaning: "Growth without new data is bloat.",
    settled_by: "pgclinic measure has the bloat of each relation.",
    ..OF_IO
};

const HITS: Sign = Sign {
    name: "io-hits",
    metric: "pgclinic_io_hits_total",
    summary: "blocks found in shared buffers, by kind of process, object and context",
    source: Source::Column(&IO, "hits"),
    normal: "Far above io-reads.",
    meaning: "As for blocks-hit, by who asked.",
    ..OF_IO
};

const EVICTIONS: Sign = Sign {
    name: "io-evictions",
    metric: "pgclinic_io_evictions_total",
    summary: "blocks thrown out of shared buffers for others",
    source: Source::Column(&IO, "evictions"),
    normal: "0 where all data fits.",
    meaning: "The buffers turn over: what is thrown out is often what is needed next.",
    ..OF_IO
};

const FSYNCS: Sign = Sign {
    name: "io-fsyncs",
    metric: "pgclinic_io_fsyncs_total",
    summary: "requests to make writes durable, by kind of process, object and context",
    source: Source::Column(&IO, "fsyncs"),
    normal: "The checkpointer's; since 18 also those of WAL, which belong to commits.",
    meaning: "Client backends that sync relation files themselves: the checkpointer's queue is full.",
    ..OF_IO
};

const RELATIONS: Sign = Sign {
    name: "relation-blocks-read",
    metric: "pgclinic_relation_blocks_read_total",
    summary: "blocks read of the relations with most of them, indexes and TOAST included",
    source: Source::Column(&BLOCKS, "read"),
    normal: "The large tables.",
    meaning: "Who fills and empties the buffers: a small table at the top is scanned again and again.",
    ..OF_IO
};

fn hit_ratio(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let table = sample.table(&TRANSACTIONS)?;
    let mut values = Vec::new();
    let mut unknown = "no block was asked for between the two samples".to_owned();
    for row in &table.rows {
        let [database] = row.labels.as_slice() else {
            continue;
        };
        let of_column = |column| sample.growth(&TRANSACTIONS, &[database], column);
        match (of_column("blocks hit"), of_column("blocks read")) {
            (Ok(hit), Ok(read)) if hit + read > 0.0 => {
                values.push(of("database", database, hit / (hit + read)));
            }
            (Err(why), _) | (_, Err(why)) => unknown = why,
            _ => {}
        }
    }
    if values.is_empty() {
        Err(unknown)
    } else {
        Ok(values)
    }
}
