//! Measuring a cluster whose server works: between the moment in which the files were listed and
//! that in which they are read, something happens.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pgclinic_cluster::{Cluster, LIVE_LIMITS, OpenOptions};
use pgclinic_measure::{MeasureOptions, ServerFacts, measure_cluster};
use pgclinic_model::document::{MeasureDocument, MeasuredRelation};
use pgclinic_model::{Glob, Progress, Selection};
use pgclinic_servers::{Checksums, Server, Session};
use pgclinic_source::DataDirectory;
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{Quiet, TempCopy, all_majors, copy_of, open, seed};

/// Statements that run when the files of a database have been listed and none was read yet, once
/// for each database.
struct Meanwhile {
    session: Mutex<Session>,
    statements: Mutex<Vec<&'static str>>,
}

impl Progress for Meanwhile {
    fn expect(&self, _bytes: u64) {
        let next = self.statements.lock().expect("no panic").pop();
        for statement in next.into_iter().flat_map(|sql| sql.split(';')) {
            let mut session = self.session.lock().expect("no panic");
            session.execute(statement).expect(statement);
        }
    }

    fn advance(&self, _bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

pub(crate) fn started(major: u16) -> (TempCopy, Server) {
    let mut all = all_majors().into_iter();
    let installation = all.find(|one| one.major == major).expect("a major");
    let copy = copy_of(&seed(&installation, Checksums::On));
    let server = copy.start().expect("a server");
    (copy, server)
}

/// `deeds` happen one a look, the first one first.
fn measured(pgdata: &Path, session: Session, deeds: &[&'static str]) -> MeasureDocument {
    let meanwhile = Meanwhile {
        session: Mutex::new(session),
        statements: Mutex::new(deeds.iter().rev().copied().collect()),
    };
    measured_with(&beside_a_server(pgdata), &meanwhile)
}

/// Nothing happens beside a server.
pub(crate) fn measured_quietly(pgdata: &Path) -> MeasureDocument {
    measured_with(&beside_a_server(pgdata), &Quiet)
}

/// No server runs.
pub(crate) fn measured_at_rest(pgdata: &Path) -> MeasureDocument {
    measured_with(&open(pgdata), &Quiet)
}

fn beside_a_server(pgdata: &Path) -> Cluster {
    let source = DataDirectory::open_beside_a_server(pgdata).expect("a directory");
    Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster")
}

fn measured_with(cluster: &Cluster, progress: &dyn Progress) -> MeasureDocument {
    let options = MeasureOptions {
        threads: NonZeroUsize::MIN,
        selection: Selection {
            databases: vec![Glob::new("clinic")],
            ..Selection::default()
        },
        spec: String::new(),
        sample_percent: None,
        memory: MemoryPlan::new(64 << 20),
        trial_clock: None,
        server: ServerFacts::default(),
    };
    let document = measure_cluster(cluster, &options, progress);
    assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
    document
}

fn named<'a>(document: &'a MeasureDocument, name: &str) -> Vec<&'a MeasuredRelation> {
    let all = document.relations.iter();
    all.filter(|own| own.relation.as_deref() == Some(name))
        .collect()
}

/// What was not measured though it is there, and what is gone.
pub(crate) fn gaps(document: &MeasureDocument) -> Vec<(&str, &str, bool)> {
    let all = document.coverage.not_checked.iter();
    all.map(|gap| (&*gap.what, &*gap.why, gap.inherent))
        .collect()
}

#[test]
fn a_table_that_is_dropped_meanwhile_is_told() {
    for major in [13, 18] {
        let (copy, server) = started(major);
        let session = server.connect("clinic").expect("a session");
        let drop = "DROP TABLE public.docs; CHECKPOINT";
        let document = measured(&copy.pgdata, session, &[drop]);
        let told = ("public.docs", "dropped while the run went on", true);
        assert_eq!(gaps(&document), [told]);
        assert!(named(&document, "docs").is_empty());
        assert!(named(&document, "docs_pkey").is_empty());
        assert_eq!(named(&document, "frozen").len(), 1);
    }
}

#[test]
fn tables_that_move_meanwhile_are_followed() {
    let deeds = [
        "VACUUM FULL public.docs; CHECKPOINT",
        "TRUNCATE public.docs; CHECKPOINT",
        "DELETE FROM public.docs WHERE id > 10; VACUUM public.docs; CHECKPOINT",
        "ALTER TABLE public.docs SET TABLESPACE annex; VACUUM FULL pg_catalog.pg_class; CHECKPOINT",
    ];
    for major in [13, 18] {
        for deed in deeds {
            let (copy, server) = started(major);
            let session = server.connect("clinic").expect("a session");
            let document = measured(&copy.pgdata, session, &[deed]);
            assert_eq!(gaps(&document), [], "{deed}");
            let docs = named(&document, "docs");
            let [docs] = docs.as_slice() else {
                panic!("{} times docs: {deed}", docs.len());
            };
            assert_eq!(docs.pages_not_measured, 0);
            let mut session = server.connect("clinic").expect("a session");
            let sql = "SELECT pg_relation_size('public.docs')";
            let bytes = session.query_value(sql).expect(sql).expect("a value");
            assert_eq!(docs.bytes.to_string(), bytes, "{deed}");
            assert_eq!(named(&document, "docs_pkey").len(), 1, "{deed}");
            assert_eq!(document.databases.len(), 1, "{deed}");
        }
    }
}

#[test]
fn a_table_that_moves_at_every_look_is_told() {
    let (copy, server) = started(18);
    let session = server.connect("clinic").expect("a session");
    let deeds = ["VACUUM FULL public.docs; CHECKPOINT"; LIVE_LIMITS.rounds as usize];
    let document = measured(&copy.pgdata, session, &deeds);
    let why = "the server truncated or rewrote it each time while it was read";
    assert_eq!(gaps(&document), [("public.docs", why, false)]);
    assert!(named(&document, "docs").is_empty());
}
