//! Hash indexes as real servers leave them: of many types, grown, emptied and cleaned; silent while
//! whole, and each hurt is found.

use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_model::plan::Change;
use pgclinic_model::{Finding, Glob, Level, Selection};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{Overlay, OverlayPatch, Source};
use pgclinic_surgery::{InjuryOptions, InjuryTargets, injury_named, plan_on};
use pgclinic_testkit::{TempCopy, checked_only, copy_of, directory, seed, server};

/// Splits, overflow pages, freed and used again, an empty index, one with a single value, one
/// without WAL.
const FILL: &str = "
CREATE TABLE hashed (id int, big bigint, small smallint, words text, fixed char(12), day date, at timestamp,
    since interval, money numeric, ratio float8, half float4, flag boolean, mark \"char\", key uuid, raw bytea,
    address inet, card macaddr, tags text[], span int4range, doc jsonb, hour timetz, clock time, about name);
INSERT INTO hashed SELECT i, i * 1000000007::bigint * (CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END), i % 300,
    md5(i::text), 'f' || i, date '2000-01-01' + i, timestamp '2001-01-01' + i * interval '1 min', i * interval '1 h',
    i * 1.25 - 3000, i / 7.0, i / 3.0, i % 2 = 0, chr(33 + i % 90)::\"char\", md5(i::text)::uuid, decode(md5(i::text), 'hex'),
    ('10.0.' || i % 256 || '.' || i % 200)::inet, ('08:00:2b:01:02:' || to_hex(i % 200 + 16))::macaddr,
    ARRAY['t' || i, NULL], int4range(i, i + 3), jsonb_build_object('n', i), '12:00+02'::timetz + i * interval '1 s',
    '00:00'::time + i * interval '1 s', 'n' || i FROM generate_series(1, 20000) AS i;
INSERT INTO hashed (id) VALUES (NULL), (NULL);
";

fn statements(major: u16) -> Vec<String> {
    let columns = [
        "id", "big", "small", "words", "fixed", "day", "at", "since", "money", "ratio", "half",
        "flag", "mark", "key", "raw", "address", "card", "tags", "span", "doc", "hour", "clock",
        "about",
    ];
    let mut all = vec![
        FILL.to_owned(),
        "INSERT INTO hashed (id, ratio, half, money) VALUES (-1, 'NaN', '-0', 'NaN'), (0, '-0', 'Infinity', 0), (1, 0, 0, 1000000)".into(),
        "CREATE TABLE nobody (id int); CREATE INDEX nobody_hash ON nobody USING hash (id)".into(),
        "CREATE UNLOGGED TABLE fleeting AS SELECT i AS id FROM generate_series(1, 5000) AS i; \
         CREATE INDEX fleeting_hash ON fleeting USING hash (id)".into(),
        "CREATE TABLE grown (id int, what text); CREATE INDEX grown_hash ON grown USING hash (id); \
         CREATE INDEX grown_part ON grown USING hash (what) WITH (fillfactor = 10) WHERE id % 2 = 0; \
         INSERT INTO grown SELECT i, 'w' || i % 50 FROM generate_series(1, 60000) AS i".into(),
        "CREATE TABLE alike AS SELECT 7 AS id, i AS n FROM generate_series(1, 4000) AS i; \
         CREATE INDEX alike_hash ON alike USING hash (id)".into(),
        "UPDATE grown SET what = what || 'x' WHERE id % 7 = 0".into(),
        "DELETE FROM grown WHERE id % 3 = 0".into(),
        "DELETE FROM alike WHERE n < 3000".into(),
    ];
    all.extend(
        columns
            .map(|column| format!("CREATE INDEX hashed_{column} ON hashed USING hash ({column})")),
    );
    all.push("VACUUM grown".into());
    all.push("VACUUM alike".into());
    all.push("DELETE FROM hashed WHERE id % 4 = 0".into());
    all.push("SET enable_seqscan = off; SELECT count(*) FROM hashed WHERE words = md5('4')".into());
    all.push("INSERT INTO grown SELECT i, 'w' || i FROM generate_series(60000, 90000) AS i".into());
    if major >= 14 {
        all.push("CREATE INDEX alike_again ON alike USING hash (n)".into());
    }
    all
}

fn filled(major: u16) -> TempCopy {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    {
        let mut session = running.connect("clinic").expect("a session");
        for statement in statements(major) {
            session
                .execute(&statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
    running.stop(StopMode::Fast).expect("a stop");
    copy
}

/// The tables that are hurt, with their indexes.
fn hurt_ones() -> Selection {
    Selection {
        databases: vec![Glob::new("clinic")],
        relations: ["grown*", "alike*"].map(Glob::new).to_vec(),
        ..Selection::default()
    }
}

fn found(source: Arc<dyn Source>, selection: Selection) -> Vec<Finding> {
    let cluster = Cluster::open(source).expect("a cluster");
    let findings = checked_only(&cluster, Level::Full, selection).findings;
    let entries = ["index-entry-without-row", "row-without-index-entry"];
    let own = |finding: &Finding| {
        finding.rule.starts_with("hash-") || entries.contains(&finding.rule.as_str())
    };
    findings.into_iter().filter(own).collect()
}

fn whole_is_silent_and_hurt_is_found(major: u16) {
    let copy = filled(major);
    let whole = found(directory(&copy.pgdata), Selection::default());
    assert_eq!(whole, []);
    let cluster = Cluster::open(directory(&copy.pgdata)).expect("a cluster");
    let targets = InjuryTargets::new(&cluster);
    let names = [
        "hash-bucket-count",
        "hash-page-type",
        "hash-entry-length",
        "hash-code-order",
        "hash-code-bucket",
        "hash-code-other",
        "hash-page-bucket",
        "hash-next-page",
        "hash-page-back",
        "hash-split-flag",
        "hash-bitmap-bit",
    ];
    for name in names {
        let injury = injury_named(name).expect("registered");
        let mut fitting = 0;
        for relation in ["grown_hash", "grown_part", "alike_hash"] {
            let options = InjuryOptions {
                seed: 3,
                sealed: true,
                relation: Some(relation.into()),
                ..InjuryOptions::default()
            };
            let Ok(planned) = plan_on(&targets, injury, &options) else {
                continue;
            };
            fitting += 1;
            let Some(Change::Bytes {
                path,
                offset,
                after,
                ..
            }) = planned.patch.changes.first()
            else {
                panic!("{name} changes bytes");
            };
            let patch = OverlayPatch::Bytes {
                path: path.clone(),
                offset: *offset,
                bytes: after.clone(),
            };
            let overlay = Overlay::new(directory(&copy.pgdata), vec![patch]).expect("a patch");
            let found = found(Arc::new(overlay), hurt_ones());
            let here = |finding: &&Finding| finding.place.block == planned.place.block;
            for rule in &planned.damage.must {
                let told = found
                    .iter()
                    .filter(here)
                    .any(|finding| finding.rule == *rule);
                assert!(told, "{name} on {relation} {}: {found:#?}", planned.place);
            }
        }
        assert!(fitting > 0, "{name} fits no page");
    }
}

#[test]
fn hash_indexes_of_18() {
    whole_is_silent_and_hurt_is_found(18);
}

#[test]
fn hash_indexes_of_15() {
    whole_is_silent_and_hurt_is_found(15);
}

#[test]
fn hash_indexes_of_13() {
    whole_is_silent_and_hurt_is_found(13);
}
