//! Keys, compression, checksums and catalogs: what does not depend on speed.

use crate::common;

use common::{experiment, metric, results, smallest};
use pgclinic_lab::RunResult;

#[test]
fn random_keys_leave_the_index_emptier_and_out_of_order() {
    let results = results(smallest("uuid-keys", &[]), None);
    let of = |arm: &str, table: &str, name: &str| metric(&results, arm, &[("table", table)], name);
    for table in ["empty", "full"] {
        assert!(of("v4", table, "leaf_density") < 80.0);
        assert!(of("v7", table, "leaf_density") > 85.0);
        assert!(of("v4", table, "fragmentation") > 20.0 && of("v7", table, "fragmentation") < 5.0);
        assert!(
            of("v4", table, "correlation").abs() < 0.2 && of("v7", table, "correlation") > 0.99
        );
        assert!(of("v4", table, "index_bytes_row") > 1.2 * of("v7", table, "index_bytes_row"));
        assert!(of("bigint", table, "index_bytes_row") < of("v7", table, "index_bytes_row"));
        // As published: no leaf of v4 is followed by the next block, nearly all of v7 are, and a
        // read in the order of random keys takes a buffer a row.
        let links = |arm: &str| of(arm, table, "contiguous_percent");
        assert!(links("v4") < 10.0 && links("v7") > 95.0);
        let buffers = |arm: &str| of(arm, table, "ordered_buffers_row");
        assert!(
            buffers("v4") > 0.9 && buffers("v7") < 0.05,
            "{}",
            buffers("v4")
        );
        assert!(of("v7", table, "leaf_span_density") > 0.95);
        // Rows are made every ten microseconds, and their keys say so.
        let delta = of("v7", table, "time_delta_us");
        assert!((9.0..11.0).contains(&delta), "{delta}");
    }
}

#[test]
fn packed_documents_are_smaller_and_each_table_packs_its_own_way() {
    let results = results(smallest("toast-compression", &[]), None);
    let bytes = |arm: &str| metric(&results, arm, &[], "bytes_row");
    let packed = |arm: &str| metric(&results, arm, &[], "packed_percent");
    // A third is long enough, as in the article.
    let third = |percent: f64| (30.0..37.0).contains(&percent);
    assert!(third(packed("pglz")), "{}", packed("pglz"));
    assert_eq!(packed("external"), 0.0);
    let run = results.iter().find(|result| result.is_done());
    let run = run.expect("a run");
    assert_eq!(run.environment["server_processors"], "1");
    assert!(bytes("pglz") < 0.7 * bytes("external"));
    let lz4 = results
        .iter()
        .find(|result| result.cell.arm == "lz4")
        .expect("a run");
    if lz4.is_done() {
        assert!(bytes("lz4") < 0.7 * bytes("external"));
        let value = |arm: &str| metric(&results, arm, &[], "value_bytes");
        assert!(
            value("lz4") != value("pglz"),
            "each table packs its own way"
        );
    }
}

#[test]
fn checksums_write_hint_bits_to_the_wal() {
    let results = results(smallest("checksum-cost", &[]), None);
    let wal = |arm: &str| metric(&results, arm, &[], "wal_bytes");
    assert!(
        wal("on") > 1.05 * wal("off"),
        "{} {}",
        wal("on"),
        wal("off")
    );
}

#[test]
fn short_lived_tables_bloat_the_catalogs_and_kept_ones_do_not() {
    let of_shop = results(
        smallest(
            "catalog-churn",
            &[("workload", &["shop"]), ("snapshot", &["none"])],
        ),
        None,
    );
    let mut plan = smallest(
        "catalog-churn",
        &[("workload", &["reporting"]), ("snapshot", &["none"])],
    );
    plan.cells
        .retain(|cell| cell.arm == "create-drop" && !cell.is_control);
    let of_reporting = results(plan, None);
    let of = |results: &[RunResult], arm: &str, name: &str| metric(results, arm, &[], name);
    let rows = |results: &[RunResult]| {
        ["attribute_rows", "attrdef_rows", "class_rows"]
            .map(|name| of(results, "create-drop", name))
    };
    assert_eq!(rows(&of_reporting), [62.0, 27.0, 9.0]);
    assert_eq!(rows(&of_shop), [232.0, 3.0, 32.0]);
    let bytes = of(&of_shop, "create-drop", "catalog_bytes");
    assert!(bytes > 1e6 && of(&of_reporting, "create-drop", "catalog_bytes") > 1e6);
    assert!(of(&of_shop, "reuse", "catalog_bytes") < 0.1 * bytes);
}

#[test]
fn autovacuum_cuts_a_bulk_of_bloat_off_a_catalog_unless_it_is_told_not_to() {
    let plan = smallest(
        "catalog-churn",
        &[("workload", &["bulk"]), ("snapshot", &["none"])],
    );
    let results = results(plan, None);
    let of = |arm: &str, name: &str| metric(&results, arm, &[], name);
    assert!(of("create-drop", "cut_bytes") > 5e6);
    assert_eq!(of("no-truncate", "cut_bytes"), 0.0);
    assert!(of("no-truncate", "kept_bytes") > 5e6 + of("create-drop", "kept_bytes"));
    // A probe was under way or just over when the file became shorter, and it is one of those that
    // the longest is of.
    assert!(of("create-drop", "cut_stall_ms") > 0.0);
    assert!(of("create-drop", "cut_stall_ms") <= of("create-drop", "stall_ms"));
    for result in &results {
        let has = result.metrics.contains_key("cut_stall_ms");
        assert_eq!(has, result.cell.arm == "create-drop", "{}", result.cell.id);
        assert!(result.metrics["stall_ms"] > 0.0);
        let sizes = &result.series["attribute_bytes"];
        assert_eq!(sizes.len(), result.series["probe_ms"].len() + 1);
    }
    let remarks = experiment("catalog-churn").remarks(&results);
    assert!(
        remarks[0]
            .starts_with("shared_buffers 128MB: with vacuum_truncate on, autovacuum truncated "),
        "{remarks:?}"
    );
    assert!(
        remarks[0].contains("with it off, 0 MB were truncated"),
        "{remarks:?}"
    );
}

#[test]
fn a_held_snapshot_keeps_dead_rows_in_the_catalogs() {
    let mut plan = smallest("catalog-churn", &[("workload", &["shop"])]);
    plan.cells
        .retain(|cell| cell.arm == "create-drop" && !cell.is_control);
    let results = results(plan, None);
    let bytes = |snapshot: &str| {
        metric(
            &results,
            "create-drop",
            &[("snapshot", snapshot)],
            "catalog_bytes",
        )
    };
    assert!(
        bytes("held") > bytes("none"),
        "{} and {}",
        bytes("held"),
        bytes("none")
    );
}

#[test]
fn what_is_warm_was_found_in_the_buffers() {
    let results = results(smallest("toast-compression", &[]), None);
    let done: Vec<&RunResult> = results.iter().filter(|result| result.is_done()).collect();
    assert!(!done.is_empty());
    for result in done {
        let pages = |name: &str| {
            let fact = result.environment.get(name);
            fact.and_then(|fact| fact.parse::<u64>().ok())
        };
        let (read, found) = (pages("warm.pages"), pages("warm.in_buffers"));
        assert!(
            read.is_some_and(|read| read > 0),
            "{:?}",
            result.environment
        );
        assert!(found >= read, "{found:?} of {read:?}");
        let mut overlaps = result.overlaps.iter();
        assert!(!overlaps.any(|words| words.contains("not proven warm")));
    }
}
