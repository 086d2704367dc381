//! Links to tablespaces that are lost and that no record of WAL describes: what is listed of them,
//! and what the map of a backup adds. On real servers.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pgclinic_model::document::NotHealed;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_surgery::start_again::{
    StartOptions, StartPlan, TablespaceMap, not_cured, plan_start,
};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, open, seed, server, value};

use crate::start_again::carry_out;

/// A seed's copy after a shutdown, without the link to its tablespace.
struct Unlinked {
    copy: TempCopy,
    /// Of the link.
    path: String,
    space: PathBuf,
}

impl Unlinked {
    fn new() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let links = fs::read_dir(copy.pgdata.join("pg_tblspc")).expect("links");
        let mut names = links.map(|link| link.expect("an entry").file_name());
        let name = names.next().expect("a link").into_string();
        let path = format!("pg_tblspc/{}", name.expect("a number"));
        fs::remove_file(copy.pgdata.join(&path)).expect("a link");
        let space = copy.tablespaces[0].clone();
        Unlinked { copy, path, space }
    }

    fn link(&self) -> PathBuf {
        self.copy.pgdata.join(&self.path)
    }

    /// A line of a map that leads there.
    fn map(&self, target: &Path) -> TablespaceMap {
        let oid = self.path.trim_start_matches("pg_tblspc/");
        TablespaceMap {
            backup: "/backup".into(),
            text: format!("{oid} {}\n", target.display()).into_bytes(),
        }
    }

    fn with<T>(&self, maps: &[TablespaceMap], ask: impl FnOnce(&StartOptions<'_>) -> T) -> T {
        ask(&StartOptions {
            pgdata: &self.copy.pgdata,
            threads: NonZeroUsize::MIN,
            progress: &Quiet,
            temp_folder: &std::env::temp_dir(),
            tablespace_maps: maps,
        })
    }

    fn plan(&self, maps: &[TablespaceMap]) -> Option<StartPlan> {
        let cluster = open(&self.copy.pgdata);
        self.with(maps, |options| {
            plan_start(&cluster, options).expect("a plan")
        })
    }

    /// What is listed of the link where no plan makes it.
    fn entry(&self, maps: &[TablespaceMap]) -> NotHealed {
        assert_eq!(self.plan(maps), None, "the server starts");
        let cluster = open(&self.copy.pgdata);
        let all = self.with(maps, |options| {
            not_cured(&cluster, options).expect("reasons")
        });
        let [own] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!(own.path, self.path);
        own.clone()
    }
}

fn says(own: &NotHealed, words: &str) {
    assert!(own.why.iter().any(|why| why.contains(words)), "{own:?}");
}

#[test]
fn a_link_of_which_nothing_says_where_it_led_is_listed_with_the_ways() {
    let ward = Unlinked::new();
    let own = ward.entry(&[]);
    says(&own, "the link to tablespace annex is not there");
    says(&own, "no record of CREATE TABLESPACE");
    says(&own, "--backup");
    let command = format!("ln -sfn DIRECTORY {}", ward.link().display());
    assert_eq!(own.commands, [command]);
}

#[test]
fn a_link_that_leads_nowhere_is_listed_with_the_directory_beside_that_has_its_files() {
    let ward = Unlinked::new();
    let gone = ward.space.with_file_name("gone");
    symlink(&gone, ward.link()).expect("a link");
    let own = ward.entry(&[ward.map(&ward.space)]);
    says(&own, "leads to");
    says(&own, "holds the files of all");
    let command = format!("ln -sfn {} {}", ward.space.display(), ward.link().display());
    assert_eq!(own.commands, [command]);
}

#[test]
fn the_map_of_a_backup_that_leads_to_other_files_makes_no_link() {
    let ward = Unlinked::new();
    let own = ward.entry(&[ward.map(&ward.copy.pgdata)]);
    says(&own, "tablespace_map of /backup says that it is in");
}

#[test]
fn the_map_of_a_backup_makes_the_link_where_the_files_of_the_tablespace_are() {
    let ward = Unlinked::new();
    let plan = ward.plan(&[ward.map(&ward.space)]).expect("a plan");
    let names: Vec<&str> = plan.cures.iter().map(|cure| cure.name.as_str()).collect();
    assert_eq!(names, ["link-tablespaces"]);
    assert_eq!(plan.not_healed, []);
    let journals = tempfile::tempdir().expect("a directory");
    carry_out(&ward.copy.pgdata, &plan, &journals.path().join("journal"));
    assert_eq!(fs::read_link(ward.link()).expect("a link"), ward.space);
    let mut running = ward.copy.start().expect("a server");
    let oid = ward.path.trim_start_matches("pg_tblspc/");
    let sql = format!("SELECT pg_tablespace_size({oid}) > 0");
    assert_eq!(value(&running, &sql), "t");
    running.stop(StopMode::Fast).expect("an end");
}
