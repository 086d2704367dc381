//! What a person brings: the shape of a table and statements of their own, which are part of the plan.

mod common;

use common::{Nobody, experiment, metric, options};
use pgclinic_lab::learned::{ColumnShape, TableShape};
use pgclinic_lab::{Experiment, Plan, PlanOptions, RunFolder, RunResult, Scale, Yours, carry_out};

fn column(name: &str, type_name: &str, bytes: [u64; 5], kept: f64) -> ColumnShape {
    ColumnShape {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        is_long: bytes[0] != bytes[4],
        nulls: 0.1,
        bytes,
        kept,
        elsewhere: 0.0,
        rises: None,
    }
}

/// A table with names that experiments use themselves, and a value of 6 kB of which a third is noise.
fn shape() -> TableShape {
    TableShape {
        schema: "pgclinic.lab-shape/1".into(),
        table: "public.own".into(),
        blocks: 1_000,
        blocks_seen: 400,
        blocks_unreadable: 0,
        rows_seen: 3_000,
        rows: 7_500,
        columns: vec![
            column("id", "int8", [8; 5], 1.0),
            column("word", "text", [3, 5, 8, 9, 20], 1.0),
            column("ord", "jsonb", [5_000, 5_500, 6_000, 6_500, 9_000], 0.3333),
        ],
    }
}

/// Plan and results, the plan having gone through its file.
fn run(name: &str, yours: Yours, arms: &[&str]) -> (Plan, Vec<RunResult>) {
    let tailored = yours.tailor(experiment(name)).expect("it has a place");
    let tailored = tailored.expect("something was brought");
    let own = |arm: &&str| (*arm).to_owned();
    let wanted = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        arms: arms.iter().map(own).collect(),
        yours,
        ..PlanOptions::default()
    };
    let plan = Plan::make(tailored.as_ref(), None, &wanted).expect("a plan");
    let results = in_a_folder(tailored.as_ref(), &plan);
    (plan, results)
}

fn in_a_folder(experiment: &dyn Experiment, plan: &Plan) -> Vec<RunResult> {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("run");
    RunFolder::create(&path, plan.clone()).expect("a run folder");
    let folder = RunFolder::open(&path).expect("the plan that was written");
    assert_eq!(folder.plan(), plan);
    let stop = Default::default();
    carry_out(experiment, &folder, &options(None), stop, &mut Nobody).expect("results")
}

#[test]
fn a_shape_makes_the_documents_of_toast_compression() {
    let yours = Yours {
        shape: Some(shape()),
        ddl: None,
    };
    let (plan, results) = run("toast-compression", yours, &["pglz", "external"]);
    assert!(plan.matrix.axes.iter().all(|axis| axis.name != "key"));
    let bytes = |arm: &str| metric(&results, arm, &[], "value_bytes");
    assert!(
        (5_000.0..7_000.0).contains(&bytes("external")),
        "{}",
        bytes("external")
    );
    assert!(bytes("pglz") < 0.6 * bytes("external"));
}

#[test]
fn own_statements_are_the_cycle_of_catalog_churn() {
    let yours = Yours {
        shape: None,
        ddl: Some(
            "CREATE TEMP TABLE one (a integer, b text); CREATE INDEX ON one (a); DROP TABLE one;"
                .into(),
        ),
    };
    let (_, results) = run("catalog-churn", yours, &["create-drop"]);
    let of = |name: &str| metric(&results, "create-drop", &[("workload", "own")], name);
    // The table, its index, its TOAST table and that one's index.
    assert_eq!(of("class_rows"), 4.0);
    assert!(of("catalog_bytes") > 0.0);
}

#[test]
fn what_has_no_place_is_told() {
    let yours = Yours {
        shape: Some(shape()),
        ddl: None,
    };
    let refused = yours.tailor(experiment("lock-contention")).map(|_| ());
    let words = refused.expect_err("it has no use for it").to_string();
    assert!(words.contains("uuid-keys"), "{words}");
}
