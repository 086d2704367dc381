//! What is there and may not be read is not lost; what nobody can know is not called whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{
    DataDirectory, Entry, Overlay, OverlayPatch, Result, Source, SourceError, SourceErrorKind,
    SourceSpec,
};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed, server};

use crate::common::{options, session};

const WORK: [&str; 8] = [
    "CREATE SCHEMA own",
    "CREATE TABLE own.keyed (id int PRIMARY KEY, word text)",
    "INSERT INTO own.keyed SELECT n, md5(n::text) FROM generate_series(1, 3000) n",
    "CREATE TABLE own.one AS SELECT n AS id, md5(n::text) AS word FROM generate_series(1, 3000) n",
    "CREATE TABLE own.two AS SELECT n + 5000 AS id, md5(n::text) AS word FROM generate_series(1, 3000) n",
    "VACUUM (ANALYZE) own.keyed, own.one, own.two",
    // Nobody reads it, so that no hint bit says what became of its rows.
    "CREATE TABLE own.unread AS SELECT n AS id FROM generate_series(1, 500) n",
    "CHECKPOINT",
];

/// A directory of which one file may not be read.
struct Denied {
    below: DataDirectory,
    path: String,
}

impl Denied {
    fn refusal(&self) -> SourceError {
        SourceError::new(&self.path, SourceErrorKind::Denied, "permission denied")
    }
}

impl Source for Denied {
    fn spec(&self) -> &SourceSpec {
        self.below.spec()
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        self.below.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.below.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if path == self.path {
            return Err(self.refusal());
        }
        self.below.read_at(path, offset, buf)
    }

    fn unreadable(&self) -> Vec<SourceError> {
        vec![self.refusal()]
    }
}

/// A stopped cluster, and the paths of relations.
struct Ward {
    copy: TempCopy,
    files: BTreeMap<&'static str, String>,
    /// Of every catalog of the database, and of their indexes.
    catalogs: Vec<String>,
}

const CATALOGS: &str = "SELECT pg_relation_filepath(oid) FROM pg_class \
     WHERE relnamespace = 'pg_catalog'::regnamespace AND NOT relisshared \
     AND relkind IN ('r', 'i') AND pg_relation_size(oid) > 0";

impl Ward {
    fn new() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let mut running = copy.start().expect("a server");
        let mut session = session(&running, "postgres");
        for sql in WORK {
            session.execute(sql).expect(sql);
        }
        let catalogs = session.query(CATALOGS).expect("paths").into_iter();
        let catalogs = catalogs.flatten().flatten().collect();
        let names = ["own.keyed", "own.one", "own.two", "pg_attribute"];
        let path = |name: &'static str| {
            let path = session.query_value(&format!("SELECT pg_relation_filepath('{name}')"));
            (name, path.expect("a path").expect("a file"))
        };
        let files = names.map(path).into_iter().collect();
        drop(session);
        running.stop(StopMode::Fast).expect("stopped");
        Ward {
            copy,
            files,
            catalogs,
        }
    }

    fn files(&self) -> DataDirectory {
        DataDirectory::open(&self.copy.pgdata).expect("a directory")
    }

    fn denied(&self, name: &str) -> SalvageReport {
        run(Arc::new(Denied {
            below: self.files(),
            path: self.files[name].clone(),
        }))
    }

    fn hurt(&self, patches: Vec<OverlayPatch>) -> SalvageReport {
        let hurt = Overlay::new(Arc::new(self.files()), patches);
        run(Arc::new(hurt.expect("plain paths")))
    }

    /// The file has these bytes from its first one on.
    fn with(&self, name: &str, bytes: Vec<u8>) -> OverlayPatch {
        OverlayPatch::Bytes {
            path: self.files[name].clone(),
            offset: 0,
            bytes,
        }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.copy.pgdata.join(&self.files[name])).expect("a file")
    }
}

fn run(source: Arc<dyn Source>) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "csv");
    options.selection.databases = vec![Glob::new("postgres")];
    let cluster = Cluster::open(source).expect("a cluster");
    salvage(&cluster, &options, &Quiet).expect("a destination")
}

fn table<'a>(account: &'a SalvageReport, name: &str) -> &'a TableAccount {
    let found = account.tables.iter().find(|table| table.table == name);
    found.unwrap_or_else(|| panic!("{name} in {account:?}"))
}

fn has_gap(account: &SalvageReport, words: &str) -> bool {
    let mut gaps = account.not_salvaged.iter().filter(|gap| !gap.inherent);
    gaps.any(|gap| gap.what.contains(words) || gap.why.contains(words))
}

#[test]
fn what_nobody_could_read_is_neither_lost_nor_whole() {
    let ward = Ward::new();
    a_file_that_may_not_be_read(&ward);
    a_catalog_that_may_not_be_read(&ward);
    files_of_two_tables_that_were_exchanged(&ward);
    catalogs_of_zeros(&ward);
    zeros_for_the_status_of_transactions(&ward);
}

fn a_file_that_may_not_be_read(ward: &Ward) {
    let account = ward.denied("own.keyed");
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let keyed = table(&account, "keyed");
    assert_eq!((keyed.rows.lost, keyed.rows.not_read), (0, 3000));
    assert_eq!((keyed.damaged_pages, keyed.pages_not_read), (0, 25));
    assert_eq!((account.totals.lost, account.totals.not_read), (0, 3000));
    assert!(has_gap(&account, "chmod u+r"), "{account:#?}");
}

fn a_catalog_that_may_not_be_read(ward: &Ward) {
    let account = ward.denied("pg_attribute");
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    assert!(has_gap(&account, "pg_attribute"), "{account:#?}");
}

/// The visibility map of each table has the LSN of a page in the file of the other.
fn files_of_two_tables_that_were_exchanged(ward: &Ward) {
    let (one, two) = (ward.bytes("own.one"), ward.bytes("own.two"));
    let account = ward.hurt(vec![ward.with("own.one", two), ward.with("own.two", one)]);
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    let uncertain = |name| table(&account, name).rows.uncertain;
    let found = ["one", "two", "keyed"].map(uncertain);
    assert_eq!(found, [3000, 3000, 0]);
    assert!(table(&account, "one").places[0].why.contains("own.two"));
}

fn catalogs_of_zeros(ward: &Ward) {
    let zeros = |path: &String| OverlayPatch::Bytes {
        path: path.clone(),
        offset: 0,
        bytes: vec![0; usize::try_from(ward.files().len(path).expect("a file")).expect("small")],
    };
    let account = ward.hurt(ward.catalogs.iter().map(zeros).collect());
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert_eq!(account.lost_catalogs.len(), 1);
    assert!(account.totals.written >= 9500);
}

/// Rows that no hint bit knows are written with a doubt, and none of them is left out.
fn zeros_for_the_status_of_transactions(ward: &Ward) {
    let path = "pg_xact/0000".to_owned();
    let account = ward.hurt(vec![OverlayPatch::Bytes {
        path,
        offset: 0,
        bytes: vec![0; 8192],
    }]);
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    let unread = table(&account, "unread");
    assert_eq!((unread.rows.uncertain, unread.rows.suspect), (500, 500));
    let keyed = table(&account, "keyed");
    assert_eq!((keyed.rows.live, keyed.rows.uncertain), (3000, 0));
}
