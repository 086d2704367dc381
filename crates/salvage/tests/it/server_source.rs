//! The files of a running server keep the promises of every source.

use std::fs;
use std::path::Path;

use pgclinic_salvage::ServerSource;
use pgclinic_servers::{Checksums, ConnectOptions, ConnectionTarget, Session};
use pgclinic_source::conformance::{check, check_shrinking, sample_tree};
use pgclinic_source::{Entry, Range, Result, Source, SourceSpec};
use pgclinic_testkit::{all_majors, copy_of, seed};

/// A folder of a source as a source of its own.
struct Below<'a> {
    source: &'a dyn Source,
    folder: &'static str,
}

impl Below<'_> {
    fn path(&self, path: &str) -> String {
        match path {
            "" => self.folder.to_owned(),
            path => format!("{}/{path}", self.folder),
        }
    }
}

impl Source for Below<'_> {
    fn spec(&self) -> &SourceSpec {
        self.source.spec()
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        self.source.list(&self.path(folder))
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.source.len(&self.path(path))
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.source.read_at(&self.path(path), offset, buf)
    }

    fn prefetch(&self, ranges: &[Range]) {
        self.source.prefetch(ranges);
    }
}

#[test]
fn the_files_of_a_server_keep_every_promise() {
    let all = all_majors();
    for installation in [all.first(), all.last()].into_iter().flatten() {
        let copy = copy_of(&seed(installation, Checksums::On));
        let server = copy.start().expect("a server");
        let files = sample_tree();
        let folder = copy.pgdata.join("sample");
        for (path, content) in &files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
            fs::write(path, content).expect("a file");
        }
        let (target, connect) = (
            ConnectionTarget::of(&server, "clinic"),
            ConnectOptions::default(),
        );
        let mut session = Session::open(&target, &connect).expect("a session");
        let missing = ServerSource::missing_rights(&mut session).expect("an answer");
        assert_eq!(missing, Vec::<String>::new());
        let source = ServerSource::new(session, &target, &connect);
        let below = Below {
            source: &source,
            folder: "sample",
        };
        check(&below, &files);
        check_shrinking(&below, "base/5/16384", &|| {
            let file = fs::File::options()
                .write(true)
                .open(folder.join("base/5/16384"));
            file.and_then(|file| file.set_len(100)).expect("it shrinks");
        });
        let refused = source.read_at("../sample/PG_VERSION", 0, &mut [0]);
        assert!(refused.is_err());
    }
}
