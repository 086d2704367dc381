//! A file that vanishes, shrinks or cannot be read between its listing and its reading: what is missing is
//! counted and told, and the rest is looked at.

use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_diagnose::{CheckDocument, Level, Severity, Verdict};
use pgclinic_servers::Checksums;
use pgclinic_source::{
    DataDirectory, Entry, Result, Source, SourceError, SourceErrorKind, SourceSpec,
};
use pgclinic_testkit::{all_majors, checked, seed};

/// What becomes of a file after it was listed.
#[derive(Clone, Copy)]
enum Fate {
    Vanishes,
    Fails,
    /// Nothing from this offset on.
    EndsAt(u64),
}

/// A data directory in which one file changes under the reader.
struct Changing {
    below: DataDirectory,
    path: String,
    fate: Fate,
}

impl Source for Changing {
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
        let count = self.below.read_at(path, offset, buf)?;
        if path != self.path {
            return Ok(count);
        }
        let broken = |kind, why| Err(SourceError::new(path, kind, why));
        match self.fate {
            Fate::Vanishes => broken(SourceErrorKind::NotFound, "no such file or folder"),
            Fate::Fails => broken(SourceErrorKind::Io, "input/output error"),
            Fate::EndsAt(end) => {
                let left = end.saturating_sub(offset);
                Ok(count.min(usize::try_from(left).unwrap_or(usize::MAX)))
            }
        }
    }
}

fn check(source: Arc<dyn Source>) -> CheckDocument {
    let cluster = Cluster::open(source).expect("a cluster");
    checked(&cluster, Level::Structure)
}

/// A seed, and the path and length of one of its tables.
fn seeded() -> (std::path::PathBuf, String, u64) {
    let installation = all_majors().pop().expect("the newest");
    let pgdata = seed(&installation, Checksums::On).pgdata;
    let source = Arc::new(DataDirectory::open(&pgdata).expect("a folder"));
    let cluster = Cluster::open(Arc::clone(&source) as Arc<dyn Source>).expect("a cluster");
    let clinic = cluster.databases.values();
    let mut clinic = clinic.filter(|database| database.name.as_deref() == Some("clinic"));
    let oid = clinic.next().expect("the database").oid;
    let catalog = cluster.catalog(oid);
    let filenode = catalog
        .by_name("public", "docs")
        .expect("the table")
        .filenode;
    let path = format!("base/{oid}/{filenode}");
    let len = source.len(&path).expect("a file");
    (pgdata, path, len)
}

#[test]
fn what_cannot_be_read_any_more_is_told() {
    let (pgdata, path, len) = seeded();
    let page = 8192;
    let table = [
        (Fate::Vanishes, len),
        (Fate::Fails, len),
        (Fate::EndsAt(0), len),
        (Fate::EndsAt(3 * page), len - 3 * page),
        (Fate::EndsAt(3 * page + 100), len - 3 * page),
        (Fate::EndsAt(len - 1), page),
    ];
    for (fate, missing) in table {
        let below = DataDirectory::open(&pgdata).expect("a folder");
        let path = path.clone();
        let document = check(Arc::new(Changing {
            below,
            path: path.clone(),
            fate,
        }));
        let coverage = &document.coverage;
        assert!(coverage.is_balanced(), "{coverage:?}");
        assert_eq!(coverage.bytes_unreadable, missing, "{coverage:?}");
        assert_eq!(
            document.verdict,
            Verdict::Incomplete,
            "{:?}",
            document.findings
        );
        let told = coverage
            .not_checked
            .iter()
            .any(|gap| gap.what.contains(&path) && !gap.inherent);
        assert!(told, "{coverage:?}");
        assert!(
            document
                .findings
                .iter()
                .all(|finding| finding.severity != Severity::Damage)
        );
    }
}
