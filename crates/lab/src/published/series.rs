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
    title: "credativ, quick benchmark of pg_dump and large objects, 2024",
    machine: "pg_dump 16 and 17, one million empty large objects in a server of version 16",
};

static DUPLICATES: Source = Source {
    title: "credativ, article on bloat by failed inserts on unique constraints, 2025",
    machine: "1,000 live rows, 20,000 failed inserts, autovacuum off",
};

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

const CUSTOM: &[(&str, &str)] = &[("format", "custom"), ("object-bytes", "0")];
const DIRECTORY: &[(&str, &str)] = &[("format", "directory"), ("object-bytes", "0")];

const MEMORY: Measure = ("peak_memory_kb", "kB");
const DUMP: Measure = ("dump_s", "s");
const ARCHIVE: Measure = ("archive_bytes", "bytes");
const CATALOGUE: Measure = ("catalogue_bytes", "bytes");
const FILES: Measure = ("files", "");
const MILLION: &str = "1000000";

/// Everything that was published as a figure. Each 1,000 attempts, where the article gives totals of 20,000.
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
    dumps("pg-dump-16", FILES, DIRECTORY, &[(MILLION, 1_000_003.0)]),
    dumps("pg-dump-17", FILES, DIRECTORY, &[(MILLION, 1_001_002.0)]),
];
