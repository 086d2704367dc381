//! The same cluster in every form in which people have their pages: the same rows and the same
//! figures.

use pgclinic_model::document::MeasureDocument;

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{pgclinic, text};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{
    Backups, Packing, TempCopy, archived, clinic, copy_of, open, scratch, seed, server,
    with_summaries,
};

/// The tables as they were written, and the relations as they were measured.
struct Taken {
    rows: BTreeMap<String, Vec<u8>>,
    measured: MeasureDocument,
}

impl Taken {
    #[track_caller]
    fn of(words: &[&str], to: &Path, exits: [u8; 2]) -> Self {
        let ran = pgclinic(&[&["salvage"], words, &["--to", text(to), "--no-sync"]].concat());
        assert!(
            exits.contains(&ran.exit),
            "{words:?}: {}{}",
            ran.out,
            ran.err
        );
        let files = common::files(to).into_iter().map(|(path, bytes)| {
            let path = path.strip_prefix(to).expect("below the directory");
            (text(path).to_owned(), bytes)
        });
        let rows = files.filter(|(name, _)| name.ends_with(".csv")).collect();
        let ran = pgclinic(&[&["measure"], words, &["--format", "json"]].concat());
        assert!(
            exits.contains(&ran.exit),
            "{words:?}: {}{}",
            ran.out,
            ran.err
        );
        let measured = serde_json::from_str(&ran.out).expect("a document");
        Taken { rows, measured }
    }
}

/// Rows and figures change, move and go; all of it stands in the files at the end.
const CHANGES: &str = "
CREATE TABLE public.since AS SELECT g, md5(g::text) AS what FROM generate_series(1, 5000) g;
CREATE INDEX ON public.since (what);
UPDATE public.docs SET note = 'since' WHERE id % 7 = 0;
DELETE FROM public.measurements WHERE id % 5 = 0;
VACUUM public.measurements;
VACUUM FULL public.chains;
TRUNCATE public.places;
DROP TABLE public.wide;
SELECT count(*) FROM public.since;
CHECKPOINT";

/// What servers leave out of base backups: the rows of the one unlogged table, its indexes, and its
/// long values.
struct Unlogged([String; 2]);

impl Unlogged {
    fn of(copy: &TempCopy) -> Self {
        let catalog = clinic(&open(&copy.pgdata));
        let mut relations = catalog.relations.values();
        let table = relations.find(|own| own.name == "scratchpad");
        let oid = table.expect("a table").oid;
        Unlogged(["scratchpad".to_owned(), format!("pg_toast_{oid}")])
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|own| name.contains(own))
    }
}

#[test]
fn the_same_cluster_gives_the_same_rows_and_figures_in_every_form() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let scratch = scratch();
    let mut server = copy.start_with(&with_summaries()).expect("a server");
    let backups = Backups::taken(&server, &scratch, CHANGES);
    server.stop(StopMode::Fast).expect("a stop");
    let folder = |name: &str| scratch.path().join(name);
    let stopped = Taken::of(&[text(&copy.pgdata)], &folder("stopped.out"), [0, 0]);
    assert!(stopped.rows.len() > 20);
    let unlogged = Unlogged::of(&copy);
    let taken = |words: &[&str], name: &str| Taken::of(words, &folder(name), [0, 3]);
    let archives = Packing::ALL.map(|packing| archived(&backups.again, packing));
    let [tar, gzip, lz4, zstd] = archives.each_ref().map(|archive| [text(archive)]);
    let forms = [
        ("plain", taken(&[text(&backups.again)], "plain.out")),
        ("tar", taken(&tar, "tar.out")),
        ("tar.gz", taken(&gzip, "gzip.out")),
        ("tar.lz4", taken(&lz4, "lz4.out")),
        ("tar.zst", taken(&zstd, "zstd.out")),
        ("chain", taken(&backups.chain(), "chain.out")),
    ];
    for (form, own) in &forms {
        let names = |taken: &Taken| taken.rows.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(own), names(&stopped), "{form}");
        for (name, bytes) in &stopped.rows {
            let is_same = own.rows.get(name) == Some(bytes);
            assert_eq!(is_same, !unlogged.has(name), "{form}: {name}");
        }
        let relations = |taken: &Taken| {
            let all = taken.measured.relations.clone().into_iter();
            let logged = all.filter(|one| !unlogged.has(&one.name()));
            logged.collect::<Vec<_>>()
        };
        let (own, expected) = (relations(own), relations(&stopped));
        assert_eq!(own.len(), expected.len(), "{form}");
        for (own, expected) in own.iter().zip(&expected) {
            assert_eq!(own, expected, "{form}");
        }
    }
}
