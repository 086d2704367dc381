//! What `gin_index_check` of 18 finds on GIN indexes that were hurt, each in another way, we find on the
//! same index and, where it names blocks, at one of them. The others it does not find.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_diagnose::plan::Change;
use pgclinic_diagnose::{
    CheckOptions, Finding, Level, Progress, Selection, Severity, check_cluster,
};
use pgclinic_servers::{Checksums, Message, Session, SqlError, StartOptions, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_surgery::{Injury, InjuryOptions, PlannedInjury, Sites, injuries, plan_on};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

/// A table with values of one row, of some and of all, so that the indexes have posting trees.
const FILL: &str = "CREATE SCHEMA parity; CREATE TABLE parity.lists (list int[]); \
     INSERT INTO parity.lists SELECT ARRAY[i % 7, 1, 1000 + i] FROM generate_series(1, 20000) i";
/// Entries that still wait.
const WAITING: &str = "INSERT INTO parity.lists SELECT ARRAY[i] FROM generate_series(1, 1000) i";

struct Quiet;

impl Progress for Quiet {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// An index that was hurt.
struct Hurt {
    injury: &'static str,
    index: String,
    oid: u32,
    block: u32,
}

fn open(pgdata: &Path) -> Cluster {
    let source = Arc::new(DataDirectory::open(pgdata).expect("a folder"));
    Cluster::open(source).expect("a cluster")
}

/// Damage of the parity schema.
fn check(pgdata: &Path) -> Vec<Finding> {
    let options = CheckOptions {
        level: Level::Full,
        threads: NonZeroUsize::MIN,
        evidence: 0,
        selection: Selection::default(),
        spec: String::new(),
        memory_bytes: CheckOptions::MEMORY_BYTES,
        spill_folder: std::env::temp_dir(),
    };
    let mut findings = check_cluster(&open(pgdata), &options, &Quiet).findings;
    findings.retain(|finding| {
        finding.severity == Severity::Damage && finding.place.schema.as_deref() == Some("parity")
    });
    findings
}

fn write(pgdata: &Path, planned: &PlannedInjury) {
    for change in &planned.patch.changes {
        let Change::Bytes {
            path,
            offset,
            after,
            ..
        } = change
        else {
            panic!("entries are hurt in place");
        };
        let file = File::options()
            .write(true)
            .open(pgdata.join(path))
            .expect("a file");
        file.write_all_at(after, *offset).expect("a write");
    }
}

fn names() -> Vec<&'static str> {
    let names = injuries().iter().map(|injury| injury.name());
    names.filter(|name| name.starts_with("gin-")).collect()
}

fn fill(copy: &TempCopy) {
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session.execute(FILL).expect("the table");
    for name in names() {
        let sql = format!("CREATE INDEX \"{name}\" ON parity.lists USING gin (list)");
        session.execute(&sql).expect("an index");
    }
    session.execute("VACUUM parity.lists").expect("a vacuum");
    session.execute(WAITING).expect("more rows");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
}

/// A place in this index: somewhere, or on its meta page.
fn planned(sites: &Sites<'_>, injury: &dyn Injury, index: &str) -> Option<PlannedInjury> {
    [None, Some(0)].into_iter().find_map(|block| {
        let options = InjuryOptions {
            database: Some("clinic".into()),
            relation: Some(index.into()),
            block,
            sealed: true,
            ..InjuryOptions::default()
        };
        plan_on(sites, injury, &options).ok()
    })
}

fn hurt(copy: &TempCopy) -> Vec<Hurt> {
    let cluster = open(&copy.pgdata);
    let sites = Sites::new(&cluster);
    let mut hurt = Vec::new();
    for injury in injuries()
        .iter()
        .filter(|injury| injury.name().starts_with("gin-"))
    {
        let index = format!("parity.{}", injury.name());
        let Some(planned) = planned(&sites, *injury, &index) else {
            continue;
        };
        write(&copy.pgdata, &planned);
        hurt.push(Hurt {
            injury: injury.name(),
            index,
            oid: planned.place.relation_oid.expect("an index"),
            block: planned.place.block.expect("a page"),
        });
    }
    hurt
}

/// The complaint about one index.
fn amcheck(session: &mut Session, oid: u32) -> Option<Message> {
    match session.query(&format!("SELECT ext.gin_index_check({oid})")) {
        Ok(_) => None,
        Err(SqlError::Server(message)) => Some(*message),
        Err(error) => panic!("{oid}: {error:?}"),
    }
}

/// Numbers of blocks in somebody's words, those of rows included.
fn blocks_in(words: &str) -> BTreeSet<u32> {
    let words = words.to_lowercase();
    let marks = [
        "block ",
        "blocks ",
        "block=",
        "pointed to=",
        "(",
        "btpo_next ",
        "btm_root ",
    ];
    let mut blocks = BTreeSet::new();
    for mark in marks {
        for (at, _) in words.match_indices(mark) {
            let behind = words.get(at + mark.len()..).unwrap_or_default();
            let digits = behind.split(|letter: char| !letter.is_ascii_digit()).next();
            blocks.extend(digits.and_then(|digits| digits.parse::<u32>().ok()));
        }
    }
    blocks
}

fn said(message: &Message) -> String {
    let detail = message.detail.as_deref().unwrap_or_default();
    format!("{} ({detail})", message.message)
}

/// What of this complaint we do not find; nothing where all is well.
fn missed(message: &Message, ours: &[&Finding]) -> Option<String> {
    let named = blocks_in(&said(message));
    let mut at: BTreeSet<u32> = ours
        .iter()
        .filter_map(|finding| finding.place.block)
        .collect();
    at.extend(ours.iter().flat_map(|finding| blocks_in(&finding.message)));
    let same = named.is_empty() || named.intersection(&at).next().is_some();
    (ours.is_empty() || !same).then(|| format!("{}; ours at {at:?}", said(message)))
}

fn finds_all_that_amcheck_finds(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    fill(&copy);
    assert!(check(&copy.pgdata).is_empty(), "sound before it is hurt");
    let hurt = hurt(&copy);
    let kinds: BTreeSet<&str> = hurt.iter().map(|hurt| hurt.injury).collect();
    assert_eq!(
        kinds,
        names().into_iter().collect(),
        "each injury has a place"
    );
    let mut ours: BTreeMap<u32, Vec<Finding>> = BTreeMap::new();
    for finding in check(&copy.pgdata) {
        let relation = finding.place.relation_oid.expect("a relation");
        ours.entry(relation).or_default().push(finding);
    }
    let server = copy
        .start_with(&StartOptions::default().with("autovacuum", "off"))
        .expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for hurt in &hurt {
        let found: Vec<&Finding> = ours.get(&hurt.oid).into_iter().flatten().collect();
        let complaint = amcheck(&mut session, hurt.oid);
        if let Some(complaint) = &complaint {
            let missed = missed(complaint, &found);
            wrong.extend(
                missed.map(|words| format!("{}, block {}: {words}", hurt.index, hurt.block)),
            );
        }
        if found.is_empty() {
            wrong.push(format!("{}: nothing of ours", hurt.index));
        }
        seen.extend(complaint.map(|_| hurt.injury));
    }
    let of_amcheck = BTreeSet::from(["gin-entry-count", "gin-keys-swapped"]);
    assert_eq!(seen, of_amcheck, "what amcheck finds");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn of_18() {
    finds_all_that_amcheck_finds(18);
}
