//! What a person brings: the shape of a table and statements of their own, which are part of the
//! plan.

use crate::common;

use common::{Nobody, experiment, metric, options};
use pgclinic_lab::table_profile::{ColumnShape, Rates, RowCounts, TableShape, Writing};
use pgclinic_lab::{
    Experiment, OwnExperiment, Plan, PlanOptions, RunFolder, RunResult, Scale, UserInput, carry_out,
};

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

/// A table with names that experiments use themselves, and a value of 6 kB of which a third is
/// noise.
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
        writing: None,
    }
}

/// Plan and results, the plan having gone through its file.
fn run(name: &str, yours: UserInput, arms: &[&str]) -> (Plan, Vec<RunResult>) {
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
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("run");
    RunFolder::create(&path, plan.clone()).expect("a run directory");
    let folder = RunFolder::open(&path).expect("the plan that was written");
    assert_eq!(folder.plan(), plan);
    let stop = Default::default();
    carry_out(experiment, &folder, &options(None), stop, &mut Nobody).expect("results")
}

/// The shape of a table into which 900 rows came within three seconds, while 1,350 relations were
/// created.
fn written() -> TableShape {
    let micros = 3_000_000;
    let inserted = |inserted| RowCounts {
        micros,
        inserted,
        ..RowCounts::default()
    };
    let rates = Rates {
        micros,
        commits: 90,
        table: inserted(900),
        classes: inserted(1_350),
        ..Rates::default()
    };
    TableShape {
        writing: Some(Writing::Counted(rates)),
        ..shape()
    }
}

#[test]
fn a_shape_makes_the_documents_of_toast_compression() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
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
    let yours = UserInput {
        traffic: vec![("a day of mine".to_owned(), 5_000)],
        ddl: Some(
            "CREATE TEMP TABLE one (a integer, b text); CREATE INDEX ON one (a); DROP TABLE one;"
                .into(),
        ),
        ..UserInput::default()
    };
    let tailored = yours
        .tailor(experiment("catalog-churn"))
        .expect("it has a place");
    let (_, results) = run("catalog-churn", yours, &["create-drop"]);
    let remarks = tailored.expect("something was brought").remarks(&results);
    assert!(
        remarks
            .iter()
            .any(|words| words.contains("a day of mine (5000): pg_attribute")),
        "{remarks:?}"
    );
    let point = [("workload", "own"), ("snapshot", "none")];
    let of = |name: &str| metric(&results, "create-drop", &point, name);
    // The table, its index, its TOAST table and that one's index.
    assert_eq!(of("class_rows"), 4.0);
    assert!(of("catalog_bytes") > 0.0);
}

#[test]
fn what_has_no_place_is_told() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
    };
    let refused = yours.tailor(experiment("lock-contention")).map(|_| ());
    let words = refused.expect_err("it has no use for it").to_string();
    assert!(words.contains("uuid-keys"), "{words}");
}

#[test]
fn a_shape_makes_the_rows_that_inserts_leave_behind() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
    };
    let arms = ["insert", "do-nothing", "do-update", "merge", "look-first"];
    let (_, results) = run("duplicate-inserts", yours, &arms);
    let point = [("collides", "second"), ("created-first", "primary")];
    let dead = |arm: &str| metric(&results, arm, &point, "dead_bytes");
    // A row of the articles leaves 54 bytes; the long value of this shape lies in its TOAST table,
    // its number and word do not.
    assert!(dead("insert") > 60_000.0, "{}", dead("insert"));
    assert!(metric(&results, "insert", &point, "growth_bytes") > 1e6);
    for arm in ["do-nothing", "look-first"] {
        assert_eq!(dead(arm), 0.0, "{arm}");
    }
}

#[test]
fn a_shape_makes_the_table_that_is_analysed() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
    };
    let (_, results) = run("analyze-prefetch", yours, &["18-worker"]);
    let point = [("maintenance_io_concurrency", "10")];
    let of = |name: &str| metric(&results, "18-worker", &point, name);
    assert!(of("table_blocks") > 1.0 && of("blocks_sampled") > 1.0);
}

#[test]
fn a_shape_makes_the_table_that_is_read_cold() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
    };
    let (_, results) = run("async-io", yours, &["worker"]);
    let pages = |read: &str| {
        let point = [("read", read), ("io-concurrency", "16")];
        metric(&results, "worker", &point, "pages")
    };
    // Rows of 6 kB, half of which lies in the TOAST table or is packed: far fewer pages than those
    // of a kilobyte make.
    assert!(
        (10.0..2_000.0).contains(&pages("sequential")),
        "{results:?}"
    );
    assert_eq!(pages("analyze"), pages("sequential"));
}

#[test]
fn the_compressibility_of_a_shape_is_a_filler() {
    let yours = UserInput {
        shape: Some(shape()),
        ..UserInput::default()
    };
    let tailored = yours
        .tailor(experiment("filesystem"))
        .expect("it has a place");
    let tailored = tailored.expect("something was brought");
    let axes = tailored.matrix(Scale::Quick).axes;
    assert_eq!(axes[0].values, ["blanks", "learned"]);
    let (_, results) = run("filesystem", yours, &["data-folder"]);
    assert!(
        metric(
            &results,
            "data-folder",
            &[("filler", "learned")],
            "disk_bytes"
        ) > 5e6
    );
}

#[test]
fn large_objects_are_as_many_and_as_large_as_those_of_the_table() {
    let mut objects = shape();
    objects.table = "pg_catalog.pg_largeobject".into();
    objects.rows = 6_000;
    objects.columns = vec![
        column("loid", "oid", [4; 5], 1.0),
        column("pageno", "int4", [4; 5], 1.0),
        column("data", "bytea", [2_048, 2_048, 2_048, 2_048, 2_049], 1.0),
    ];
    // Each third row begins another object.
    objects.columns[0].rises = Some(0.3333);
    let with = |shape: TableShape| UserInput {
        shape: Some(shape),
        ..UserInput::default()
    };
    let tailored = with(objects)
        .tailor(experiment("large-object-dump"))
        .expect("it has a place");
    let axes = tailored
        .expect("something was brought")
        .matrix(Scale::Quick)
        .axes;
    let values = |name: &str| {
        axes.iter()
            .find(|axis| axis.name == name)
            .map(|axis| axis.values.clone())
    };
    assert_eq!(values("objects").expect("an axis"), ["500", "2000"]);
    assert_eq!(values("object-bytes").expect("an axis"), ["0", "5529"]);
    let refused = with(shape())
        .tailor(experiment("large-object-dump"))
        .map(|_| ());
    assert!(
        refused
            .expect_err("another table")
            .to_string()
            .contains("pg_largeobject")
    );
}

#[test]
fn relations_are_created_as_fast_as_in_the_cluster_that_was_learned_from() {
    let yours = UserInput {
        shape: Some(written()),
        ..UserInput::default()
    };
    let tailored = yours
        .tailor(experiment("catalog-churn"))
        .expect("it has a place");
    let tailored = tailored.expect("something was brought");
    let only = |axis: &str, value: &str| (axis.to_owned(), vec![value.to_owned()]);
    let wanted = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        arms: vec!["create-drop".to_owned()],
        only: vec![
            only("workload", "reporting"),
            only("snapshot", "none"),
            only("rate", "learned"),
        ],
        yours,
        ..PlanOptions::default()
    };
    let plan = Plan::make(tailored.as_ref(), None, &wanted).expect("a plan");
    let results = in_a_folder(tailored.as_ref(), &plan);
    let done = results.iter().find(|result| !result.cell.is_control);
    let metric = |name: &str| done.expect("a run").metrics[name];
    // 450 relations a second are 50 cycles of nine; the last of 25 cycles is due after 24 fiftieths
    // of a second.
    assert_eq!(metric("class_rows"), 9.0);
    assert!(
        metric("cycles_s") <= 50.0 * 25.0 / 24.0,
        "{}",
        metric("cycles_s")
    );
    let remarks = tailored.remarks(&results);
    assert!(
        remarks.iter().any(|words| words
            .contains("450.0 relations created a second, as many as 50.0 cycles of reporting")),
        "{remarks:?}"
    );
}

#[test]
fn a_load_of_an_own_file_comes_as_fast_as_rows_did() {
    let text = r#"
name = "own-rate"
question = "Does the load come at the learned rate?"
blocks = 1

[setup]
sql = "CREATE INDEX ON learned (id);"

[[arm]]
name = "plain"

[load]
script = "UPDATE learned SET word = 'new' WHERE id = (SELECT min(id) FROM learned);"
seconds = 2
rate = "learned"

[[metric]]
name = "tps"
"#;
    let own = OwnExperiment::parse(text).expect("an experiment");
    let yours = UserInput {
        shape: Some(written()),
        ..UserInput::default()
    };
    let tailored = yours.tailor(&own).expect("it has a place");
    let tailored = tailored.expect("something was brought");
    let wanted = PlanOptions {
        yours,
        ..PlanOptions::default()
    };
    let plan = Plan::make(tailored.as_ref(), Some(text.to_owned()), &wanted).expect("a plan");
    let results = in_a_folder(tailored.as_ref(), &plan);
    for result in &results {
        assert!(result.is_done(), "{}", result.outcome.words());
        // 300 rounds a second fall due at random moments; a slow machine answers fewer, and none
        // answers more.
        let tps = result.metrics["tps"];
        assert!(tps > 0.0 && tps < 400.0, "{tps}");
    }
}
