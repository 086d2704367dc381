//! The published figures as data.

use super::{Series, Source};

static MINOR_RELEASES: Source = Source {
    title: "credativ, Quick Benchmark: PostgreSQL 2024Q1 Release Performance Improvements, 22 February 2024",
    machine: "15.5 and 15.6 of Debian 12 on a ThinkPad T14s Gen 3, i7-1280P, 20 threads, 32 GB; read off the text",
};

static ANALYZE: Source = Source {
    title: "credativ, quick benchmark of ANALYZE and maintenance_io_concurrency, 2024",
    machine: "13.16 and 14.13 on a ThinkPad T14s Gen 3, i7-1280P, local NVMe; pgbench scale 1000, statistics target 1000, cold",
};

static LARGE_OBJECTS: Source = Source {
    title: "credativ, quick benchmark of pg_dump and large objects, December 2024",
    machine: "pg_dump 16 and 17, one million empty large objects in a server of version 16",
};

static DUPLICATES: Source = Source {
    title: "credativ, article on bloat by failed inserts on unique constraints, late 2024",
    machine: "1,000 live rows, 20,000 failed inserts, autovacuum off",
};

static TOAST: Source = Source {
    title: "credativ, TOASTed JSONB data in PostgreSQL: performance tests of compression algorithms, 15 October 2024",
    machine: "a week of GitHub events, three tables, 32 GB of memory",
};

static UUID: Source = Source {
    title: "credativ, article on UUIDv4 and UUIDv7 as primary keys, December 2025",
    machine: "PostgreSQL 18; 50 million rows into an empty table, and 1 million for the pages of the index",
};

static CATALOGS: Source = Source {
    title: "credativ, article on system tables bloated by temporary tables, 2024",
    machine: "counted from the statements of the article",
};

static VOLUMES: Source = Source {
    title: "Federico Campoli, Vindicating ZFS with PostgreSQL (ext4 and ZFS), talk at POSETTE, June 2024",
    machine: "pgbench 16.2, scale 500, 50 clients, 120 s, filler of blanks, on a Google e2-highmem-8 with 62 GB of memory and persistent SSD disks",
};

/// What was published without figures to draw, or beside them, by experiment.
pub(super) const WITHOUT_SERIES: &[(&str, &str)] = &[
    (
        "async-io",
        "published is advice and no series: workers for a quarter to a half of the threads, and effective_io_concurrency up to 200 on fast disks; \
         18 ships with io_method worker, 3 workers, effective_io_concurrency 16 and io_combine_limit 128 kB",
    ),
    (
        "checksum-cost",
        "this load is the worst case: every transaction changes a page, reads set hint bits on pages that were just changed, and nobody waits for the \
         disk. Published is a rule of thumb for normal loads and no series: data checksums usually cost under 2 %",
    ),
    (
        "jit-memory",
        "published, each over 5,000 queries: 15.5, without the fix, grows in a line from 100 to 600 MB of resident memory, about 80 kB a query; 15.6, \
         with it, stays near 100 MB. Turning inlining off (jit_inline_above_cost = -1) was the way out before the fix",
    ),
    (
        "connection-memory",
        "no figures are published to hold this against: the talk (PGConf.DE 2025) is known by its summary, memory while a query runs by smaps",
    ),
    (
        "toast-compression",
        "of times nothing but words is published: lz4 is ahead everywhere; on 8 cores pglz collapses once there are more sessions than cores, on \
         20 cores it trails the uncompressed table from the start",
    ),
    (
        "oauth-login",
        "published is the way to set it up, and no figures",
    ),
];

/// What was measured, in which unit.
type Measure = (&'static str, &'static str);

/// Values by place of an axis.
type Values = &'static [(&'static str, f64)];

const fn along(
    experiment: &'static str,
    (metric, unit): Measure,
    (arm, axis): (&'static str, &'static str),
    values: Values,
    source: &'static Source,
) -> Series {
    Series {
        experiment,
        metric,
        unit,
        arm,
        axis,
        held: &[],
        is_scale_free: false,
        values,
        source,
    }
}

const fn locks(arm: &'static str, values: Values) -> Series {
    along(
        "lock-contention",
        ("tps", "1/s"),
        (arm, "clients"),
        values,
        &MINOR_RELEASES,
    )
}

const fn analyze(arm: &'static str, values: Values) -> Series {
    let place = (arm, "maintenance_io_concurrency");
    along(
        "analyze-prefetch",
        ("analyze_s", "s"),
        place,
        values,
        &ANALYZE,
    )
}

/// The last created of the unique indexes refuses, as in the article.
const fn duplicates(arm: &'static str, measure: Measure, values: Values) -> Series {
    Series {
        held: &[("created-first", "primary"), ("autovacuum", "off")],
        ..along(
            "duplicate-inserts",
            measure,
            (arm, "collides"),
            values,
            &DUPLICATES,
        )
    }
}

const fn dumps(
    arm: &'static str,
    measure: Measure,
    format: &'static [(&'static str, &'static str)],
    values: Values,
) -> Series {
    Series {
        held: format,
        ..along(
            "large-object-dump",
            measure,
            (arm, "objects"),
            values,
            &LARGE_OBJECTS,
        )
    }
}

/// Growth as the article says it, about 80 kB a query; the ends of its curve, 100 and 600 MB after
/// 5,000, are 100. 15.6 "stays near".
const fn leaks(arm: &'static str, values: Values) -> Series {
    along(
        "jit-memory",
        ("resident_kb_per_1000", "kB"),
        (arm, ""),
        values,
        &MINOR_RELEASES,
    )
}

/// Table and TOAST as shares of the table without compression, of events.
const fn toast(arm: &'static str, values: Values) -> Series {
    Series {
        held: &[("documents", "events")],
        ..along(
            "toast-compression",
            ("share", "%"),
            (arm, "sessions"),
            values,
            &TOAST,
        )
    }
}

const fn churn(metric: &'static str, values: Values) -> Series {
    Series {
        held: &[
            ("snapshot", "none"),
            ("rate", "max"),
            ("shared_buffers", "128MB"),
        ],
        ..along(
            "catalog-churn",
            (metric, ""),
            ("create-drop", "workload"),
            values,
            &CATALOGS,
        )
    }
}

/// Data of blanks, as pgbench fills its tables.
const fn volumes(arm: &'static str, measure: Measure, values: Values) -> Series {
    along("filesystem", measure, (arm, "filler"), values, &VOLUMES)
}

/// What does not depend on the number of rows, but for the last leaves.
const fn uuid_shape(arm: &'static str, measure: Measure, values: Values) -> Series {
    Series {
        is_scale_free: true,
        ..uuid(arm, measure, values)
    }
}

const fn uuid(arm: &'static str, measure: Measure, values: Values) -> Series {
    Series {
        held: &[("table", "empty")],
        ..along("uuid-keys", measure, (arm, "rows"), values, &UUID)
    }
}

const fn uuid_again(arm: &'static str, values: Values) -> Series {
    Series {
        held: &[("table", "full")],
        ..along("uuid-keys", INSERT, (arm, "rows"), values, &UUID)
    }
}

const INSERT: Measure = ("insert_s", "s");
const INDEX: Measure = ("index_bytes_row", "bytes");
const LEAVES: Measure = ("leaf_pages", "");
const DENSITY: Measure = ("leaf_density", "%");
const FRAGMENTS: Measure = ("fragmentation", "%");
const CORRELATION: Measure = ("correlation", "");
const READ: Measure = ("ordered_read_s", "s");
const SPAN: Measure = ("leaf_span_density", "");
const LINKS: Measure = ("contiguous_percent", "%");
const BUFFERS: Measure = ("ordered_buffers_row", "");
const MILLIONS: &str = "50000000";

const STEADY: Measure = ("steady_tps", "1/s");
const SPACE: Measure = ("disk_bytes", "bytes");

const CUSTOM: &[(&str, &str)] = &[("format", "custom"), ("object-bytes", "0")];
const DIRECTORY: &[(&str, &str)] = &[("format", "directory"), ("object-bytes", "0")];

const MEMORY: Measure = ("peak_memory_kb", "kB");
const DUMP: Measure = ("dump_s", "s");
const ARCHIVE: Measure = ("archive_bytes", "bytes");
const CATALOGUE: Measure = ("catalogue_bytes", "bytes");
const FILES: Measure = ("files", "");
const MILLION: &str = "1000000";

/// Everything that was published as a figure. Each 1,000 attempts, where the article gives totals
/// of 20,000.
pub static SERIES: &[Series] = &[
    locks("15.5", &[("128", 650_000.0), ("1536", 65_000.0)]),
    locks("15.6", &[("128", 650_000.0), ("1536", 300_000.0)]),
    analyze(
        "13",
        &[
            ("0", 19.557),
            ("1", 21.610),
            ("5", 19.623),
            ("10", 21.060),
            ("20", 21.463),
            ("50", 20.533),
            ("100", 20.230),
            ("500", 20.537),
        ],
    ),
    analyze(
        "14",
        &[
            ("0", 24.707),
            ("1", 29.840),
            ("5", 8.740),
            ("10", 5.777),
            ("20", 4.067),
            ("50", 3.353),
            ("100", 3.007),
            ("500", 2.763),
        ],
    ),
    duplicates("insert", ("dead_bytes", "bytes"), &[("second", 54_000.0)]),
    duplicates("do-nothing", ("dead_bytes", "bytes"), &[("second", 0.0)]),
    duplicates("insert", ("xids", ""), &[("second", 1_000.0)]),
    duplicates("do-nothing", ("xids", ""), &[("second", 0.0)]),
    duplicates("insert", ("dead_percent", "%"), &[("second", 85.0)]),
    duplicates("insert", ("index_entries", ""), &[("second", 21_000.0)]),
    leaks("15.5", &[("", 80_000.0)]),
    leaks("15.6", &[("", 0.0)]),
    toast("pglz", &[("1", 41.8)]),
    toast("lz4", &[("1", 38.8)]),
    toast("external", &[("1", 100.0)]),
    churn("attribute_rows", &[("reporting", 62.0), ("shop", 173.0)]),
    churn("attrdef_rows", &[("reporting", 27.0), ("shop", 3.0)]),
    churn("class_rows", &[("reporting", 9.0), ("shop", 32.0)]),
    volumes("ext4", STEADY, &[("blanks", 4_913.0)]),
    volumes("ext4-noatime", STEADY, &[("blanks", 5_371.0)]),
    volumes("ext4-noatime-writeback", STEADY, &[("blanks", 5_432.0)]),
    volumes("zfs", STEADY, &[("blanks", 1_776.0)]),
    volumes("zfs-noatime", STEADY, &[("blanks", 1_835.0)]),
    volumes("zfs-noatime-lz4", STEADY, &[("blanks", 4_268.0)]),
    volumes("zfs-noatime-lz4-16k", STEADY, &[("blanks", 6_288.0)]),
    volumes("zfs-module-and-log", STEADY, &[("blanks", 6_268.0)]),
    volumes("ext4-noatime", SPACE, &[("blanks", 7.5e9)]),
    volumes("zfs-noatime-lz4", SPACE, &[("blanks", 986e6)]),
    volumes("zfs-noatime-lz4-16k", SPACE, &[("blanks", 2.2e9)]),
    uuid("v4", INSERT, &[(MILLIONS, 1_239.840)]),
    uuid("v7", INSERT, &[(MILLIONS, 106.343)]),
    uuid_again("v4", &[(MILLIONS, 2_776.881)]),
    uuid_again("v7", &[(MILLIONS, 100.354)]),
    uuid_shape("v4", INDEX, &[(MILLION, 40.03), (MILLIONS, 41.54)]),
    uuid_shape("v7", INDEX, &[(MILLION, 31.56), (MILLIONS, 31.54)]),
    uuid("v4", LEAVES, &[(MILLION, 4_861.0)]),
    uuid("v7", LEAVES, &[(MILLION, 3_832.0)]),
    uuid_shape("v4", DENSITY, &[(MILLION, 71.0)]),
    uuid_shape("v7", DENSITY, &[(MILLION, 89.98)]),
    uuid_shape("v4", FRAGMENTS, &[(MILLION, 49.99)]),
    uuid_shape("v7", FRAGMENTS, &[(MILLION, 0.0)]),
    uuid_shape("v4", CORRELATION, &[(MILLION, -0.002_48)]),
    uuid_shape("v7", CORRELATION, &[(MILLION, 1.0)]),
    uuid_shape("v4", SPAN, &[(MILLION, 0.995)]),
    uuid_shape("v7", SPAN, &[(MILLION, 0.995)]),
    uuid_shape("v4", LINKS, &[(MILLION, 0.0)]),
    uuid_shape("v7", LINKS, &[(MILLION, 100.0 * 3_812.0 / 3_831.0)]),
    uuid_shape("v4", BUFFERS, &[(MILLION, 1.004_73)]),
    uuid_shape("v7", BUFFERS, &[(MILLION, 0.010_204)]),
    uuid("v4", READ, &[(MILLION, 318.0 / 1_000.0)]),
    uuid("v7", READ, &[(MILLION, 113.0 / 1_000.0)]),
    dumps("pg-dump-16", MEMORY, CUSTOM, &[(MILLION, 755_692.0)]),
    dumps("pg-dump-17", MEMORY, CUSTOM, &[(MILLION, 217_776.0)]),
    dumps("pg-dump-16", MEMORY, DIRECTORY, &[(MILLION, 755_624.0)]),
    dumps("pg-dump-17", MEMORY, DIRECTORY, &[(MILLION, 217_980.0)]),
    dumps("pg-dump-16", DUMP, CUSTOM, &[(MILLION, 36.73)]),
    dumps("pg-dump-17", DUMP, CUSTOM, &[(MILLION, 34.69)]),
    dumps("pg-dump-16", DUMP, DIRECTORY, &[(MILLION, 503.48)]),
    dumps("pg-dump-17", DUMP, DIRECTORY, &[(MILLION, 471.04)]),
    dumps("pg-dump-16", ARCHIVE, CUSTOM, &[(MILLION, 221_249_536.0)]),
    dumps("pg-dump-17", ARCHIVE, CUSTOM, &[(MILLION, 30_408_704.0)]),
    dumps(
        "pg-dump-16",
        CATALOGUE,
        DIRECTORY,
        &[(MILLION, 193_986_560.0)],
    ),
    dumps(
        "pg-dump-17",
        CATALOGUE,
        DIRECTORY,
        &[(MILLION, 7_235_174.0)],
    ),
    // Without the directory itself, which the article's `find` counts.
    dumps("pg-dump-16", FILES, DIRECTORY, &[(MILLION, 1_000_002.0)]),
    dumps("pg-dump-17", FILES, DIRECTORY, &[(MILLION, 1_001_001.0)]),
];
