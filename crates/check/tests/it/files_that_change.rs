//! A file that vanishes, shrinks or cannot be read between its listing and its reading: what is
//! missing is counted and told, and the rest is looked at.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use pgclinic_check::{CheckOptions, ResumableRun, RunState, Since, StateKeeper, check_cluster_on};
use pgclinic_cluster::Cluster;
use pgclinic_model::{CheckDocument, Level, Selection, Severity, Verdict};
use pgclinic_servers::Checksums;
use pgclinic_source::{
    DataDirectory, Entry, Overlay, OverlayPatch, Result, Source, SourceError, SourceErrorKind,
    SourceSpec,
};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{Quiet, all_majors, checked, directory, seed};

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
            Fate::Vanishes => broken(SourceErrorKind::NotFound, "no such file or directory"),
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
    let source = Arc::new(DataDirectory::open(&pgdata).expect("a directory"));
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
        let below = DataDirectory::open(&pgdata).expect("a directory");
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

/// The last state of a run, as the file has it.
#[derive(Default)]
struct Last(RefCell<String>);

impl StateKeeper for Last {
    fn keep(&self, state: &RunState) {
        *self.0.borrow_mut() = serde_json::to_string(state).expect("plain data");
    }
}

/// A run over everything, or over what changed since another; and the state that it leaves.
fn run(source: Arc<dyn Source>, since: Option<&RunState>) -> (CheckDocument, RunState) {
    let cluster = Cluster::open(source).expect("a cluster");
    let everything = CheckOptions {
        level: Level::Structure,
        threads: NonZeroUsize::MIN.saturating_add(1),
        evidence: 0,
        selection: Selection::default(),
        spec: "a cluster".into(),
        memory: MemoryPlan::default(),
        spill_folder: std::env::temp_dir(),
        since: None,
    };
    let since = since.map(|state| Since::of(state, &cluster, &everything).expect("it can tell"));
    let options = CheckOptions {
        since,
        ..everything
    };
    let last = Last::default();
    let course = ResumableRun::new(&cluster, &options, Some(&last));
    let document = check_cluster_on(course, &cluster, &options, &Quiet);
    let state = serde_json::from_str(&last.0.into_inner()).expect("a state");
    (document, state)
}

/// The data directory with a page of the file hurt, whose LSN stays what it was.
fn hurt(pgdata: &Path, path: &str) -> Arc<dyn Source> {
    let patch = OverlayPatch::Bytes {
        path: path.to_owned(),
        offset: 8192 + 4096,
        bytes: vec![7; 512],
    };
    Arc::new(Overlay::new(directory(pgdata), vec![patch]).expect("a plain path"))
}

fn failing(pgdata: &Path, path: &str, fate: Fate) -> Arc<dyn Source> {
    Arc::new(Changing {
        below: DataDirectory::open(pgdata).expect("a directory"),
        path: path.to_owned(),
        fate,
    })
}

/// What no run has read is not passed over, however old its pages are and however many runs follow.
#[test]
fn a_file_that_could_not_be_read_is_looked_at_whole_by_the_next_run() {
    let (pgdata, path, len) = seeded();
    for fate in [Fate::Fails, Fate::EndsAt(len - 1)] {
        let (first, state) = run(failing(&pgdata, &path, fate), None);
        assert_eq!(first.verdict, Verdict::Incomplete);
        assert!(state.complete);
        let (second, state) = run(failing(&pgdata, &path, Fate::Fails), Some(&state));
        assert_eq!(second.verdict, Verdict::Incomplete, "it fails still");
        let (sound, passed) = run(directory(&pgdata), Some(&state));
        assert_eq!(sound.verdict, Verdict::Healthy, "{:?}", sound.coverage);
        assert!(sound.coverage.pages >= len / 8192, "{:?}", sound.coverage);
        assert!(sound.coverage.pages_unchanged > sound.coverage.pages);
        let (found, _) = run(hurt(&pgdata, &path), Some(&state));
        assert_eq!(found.verdict, Verdict::Damaged, "{:?}", found.coverage);
        let place = &found.findings.first().expect("damage").place;
        assert_eq!((place.path.as_str(), place.block), (path.as_str(), Some(1)));
        // What was read at last has not changed since.
        let (after, _) = run(directory(&pgdata), Some(&passed));
        assert!(after.coverage.pages < sound.coverage.pages);
    }
}

/// Older states have the gap alone.
#[test]
fn a_gap_that_names_a_file_tells_it_too() {
    let (pgdata, path, _) = seeded();
    let (_, state) = run(failing(&pgdata, &path, Fate::Fails), None);
    let mut older = serde_json::to_value(&state).expect("plain data");
    let books = older["books"].as_object_mut().expect("books");
    books.remove("unread").expect("what was not read");
    books.remove("open").expect("what stays open");
    let older: RunState = serde_json::from_value(older).expect("a state");
    let (found, _) = run(hurt(&pgdata, &path), Some(&older));
    assert_eq!(found.verdict, Verdict::Damaged, "{:?}", found.coverage);
}

/// A gap that no file explains stays one, run after run.
#[test]
fn what_was_not_compared_stays_open() {
    let (pgdata, path, _) = seeded();
    let (_, state) = run(directory(&pgdata), None);
    let mut state = serde_json::to_value(&state).expect("plain data");
    let gap =
        serde_json::json!({"what": "bucket chains of public.docs", "why": "a page is damaged"});
    state["books"]["open"] = serde_json::json!([
        {"path": path, "gap": gap},
        {"path": "base/5/9999999", "gap": {"what": "of a relation that is gone", "why": "a page is damaged"}},
    ]);
    let mut state: RunState = serde_json::from_value(state).expect("a state");
    for _ in 0..2 {
        let (document, next) = run(directory(&pgdata), Some(&state));
        assert_eq!(document.verdict, Verdict::Incomplete);
        let gaps = &document.coverage.not_checked;
        let open: Vec<_> = gaps.iter().filter(|gap| !gap.inherent).collect();
        assert_eq!(open.len(), 1, "{open:?}");
        assert_eq!(open[0].what, "bucket chains of public.docs");
        assert_eq!(open[0].why.matches("a page is damaged").count(), 1);
        assert_eq!(open[0].why.matches("an earlier run").count(), 1);
        state = next;
    }
}
