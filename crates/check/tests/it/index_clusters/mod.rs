//! A cluster made for one test: indexes in the states that the test is about.

use std::path::PathBuf;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_model::{CheckDocument, Level, Severity};
use pgclinic_servers::{
    Checksums, InitOptions, Installation, Scratch, Server, StartOptions, StopMode, initdb,
};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{checked, run_as, scratch, server};

/// A stopped cluster with one database `postgres`.
pub(crate) struct Made {
    pub(crate) pgdata: PathBuf,
    _scratch: Scratch,
    installation: Installation,
}

fn run(server: &Server, script: &str) {
    let mut session = server.connect("postgres").expect("a session");
    let statements = script.split(";\n").map(str::trim);
    for statement in statements.filter(|words| !words.is_empty()) {
        session
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

const BLOCK_BYTES: u64 = 8192;

/// A page to be put in place of the one that is there.
#[derive(Clone)]
pub(crate) struct OtherPage {
    pub(crate) path: String,
    pub(crate) block: u64,
    pub(crate) bytes: Vec<u8>,
}

impl OtherPage {
    /// With its checksum made true.
    #[allow(dead_code)]
    pub(crate) fn sealed(mut self) -> Self {
        let block = u32::try_from(self.block).expect("a small file");
        pgclinic_format::build::seal_page(&mut self.bytes, block);
        self
    }
}

impl Made {
    /// Runs each script in a session of its own, one statement after the other, and stops the
    /// server.
    pub(crate) fn with(major: u16, scripts: &[&str]) -> Made {
        let (made, mut server) = Made::running(major);
        scripts.iter().for_each(|script| run(&server, script));
        server.stop(StopMode::Fast).expect("a stop");
        made
    }

    /// The same, but the server is killed after the last script, with a checkpoint before it.
    #[allow(dead_code)]
    pub(crate) fn killed(major: u16, scripts: &[&str], last: &str) -> Made {
        let (made, mut server) = Made::running(major);
        scripts.iter().for_each(|script| run(&server, script));
        run(&server, "CHECKPOINT");
        run(&server, last);
        server.kill();
        made
    }

    /// Starts the server, which recovers, and stops it.
    #[allow(dead_code)]
    pub(crate) fn recover(&self) {
        let start = StartOptions::default();
        let mut server =
            Server::start(&self.installation, &run_as(), &self.pgdata, &start).expect("a server");
        server.stop(StopMode::Fast).expect("a stop");
    }

    fn running(major: u16) -> (Made, Server) {
        let installation = server(major);
        let scratch = scratch();
        let pgdata = scratch.folder("data").expect("a directory");
        let options = InitOptions {
            checksums: Checksums::On,
            ..InitOptions::default()
        };
        initdb(&installation, &run_as(), &pgdata, &options).expect("a cluster");
        let start = StartOptions::default();
        let server = Server::start(&installation, &run_as(), &pgdata, &start).expect("a server");
        let made = Made {
            pgdata,
            _scratch: scratch,
            installation,
        };
        (made, server)
    }

    /// What the check says.
    pub(crate) fn check(&self, level: Level) -> CheckDocument {
        self.check_with(level, Vec::new())
    }

    /// What the check says when these pages stand in place of the cluster's own.
    pub(crate) fn check_with(&self, level: Level, pages: Vec<OtherPage>) -> CheckDocument {
        let patch = |page: OtherPage| OverlayPatch::Bytes {
            path: page.path,
            offset: page.block * BLOCK_BYTES,
            bytes: page.bytes,
        };
        let patches = pages.into_iter().map(patch).collect();
        let source = Arc::new(DataDirectory::open(&self.pgdata).expect("a directory"));
        let source = Arc::new(Overlay::new(source, patches).expect("plain paths"));
        let cluster = Cluster::open(source).expect("a cluster");
        checked(&cluster, level)
    }

    /// A page of a relation of the schema `public`, to be changed and handed to
    /// [`Made::check_with`].
    #[allow(dead_code)]
    pub(crate) fn page(&self, relation: &str, block: u64) -> OtherPage {
        let source = Arc::new(DataDirectory::open(&self.pgdata).expect("a directory"));
        let cluster = Cluster::open(source).expect("a cluster");
        let database = cluster
            .databases
            .values()
            .find(|database| database.name.as_deref() == Some("postgres"))
            .expect("a database");
        let catalog = cluster.catalog(database.oid);
        let relation = catalog.by_name("public", relation).expect("a relation");
        let path = format!("base/{}/{}", database.oid, relation.filenode);
        let file = std::fs::read(self.pgdata.join(&path)).expect("a file");
        let start = usize::try_from(block * BLOCK_BYTES).expect("a small file");
        let bytes = file[start..start + 8192].to_vec();
        OtherPage { path, block, bytes }
    }

    /// Nothing above a note at any level.
    pub(crate) fn is_silent(&self) {
        for level in [Level::Structure, Level::Full] {
            let document = self.check(level);
            assert_eq!(told(&document), Vec::<String>::new(), "{level:?}");
        }
    }
}

/// Findings above a note.
pub(crate) fn told(document: &CheckDocument) -> Vec<String> {
    let loud = document
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note);
    loud.map(|finding| {
        let place = &finding.place;
        format!(
            "{} {} {:?} {:?}: {}",
            finding.rule,
            place.relation.as_deref().unwrap_or(&place.path),
            place.block,
            place.item,
            finding.message
        )
    })
    .collect()
}
