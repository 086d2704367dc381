//! Tablespaces that no link leads to and for which none is made: why, and what a user can do. A
//! server starts without them, and every table in them is lost to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_model::shell_word;

use super::tablespace_links::{Mapped, are_made_by_server, files_of, link, lost};
use super::{Found, StartOptions, Stops};

/// Directories beside those of links that are tried.
const TRIED_MAX: usize = 1_000;

/// Each that is lost and not among those for which links are `made`, with why the directories that
/// were named are `refused`.
pub(super) fn open(
    cluster: &Cluster,
    options: &StartOptions<'_>,
    (refused, made): (&[(Mapped, String)], &BTreeSet<Oid>),
) -> Found {
    let mut found = Found::default();
    let mut lost = lost(cluster);
    lost.retain(|oid, _| !made.contains(oid));
    if lost.is_empty() || are_made_by_server(cluster) {
        return found;
    }
    let settled = settled_by_recovery(cluster);
    for (oid, name) in lost.iter().filter(|(oid, _)| !settled.contains(*oid)) {
        let path = options.pgdata.join(link(*oid));
        let beside = beside(cluster, options.pgdata, *oid);
        let mut why = vec![state_of(&path, name)];
        let own = refused.iter().filter(|(own, _)| own.oid == *oid);
        why.extend(own.map(|(own, reason)| {
            let target = own.target.display();
            format!("{} says that it is in {target}: {reason}", own.by)
        }));
        if why.len() == 1 {
            why.push("no record of CREATE TABLESPACE in pg_wal, and no tablespace_map, says where its directory is".into());
        }
        why.extend(beside.iter().map(|(_, holds)| holds.clone()));
        why.push(WAYS.into());
        found.leave_to_user(
            &link(*oid),
            Stops::Other,
            why,
            vec![command(&path, &beside)],
        );
    }
    found
}

const WAYS: &str = "the tablespace_map of a base backup has its location: name the backup with --backup; or make the link yourself, to the directory that the server used";

/// Of these recovery itself makes or removes the link.
fn settled_by_recovery(cluster: &Cluster) -> BTreeSet<Oid> {
    let Some(plan) = cluster.recovery().filter(|_| cluster.needs_recovery()) else {
        return BTreeSet::new();
    };
    let logged = cluster.logged_tablespaces();
    let made = logged.made.into_iter();
    let made = made.filter(|(_, own)| own.at >= plan.start.redo);
    made.map(|(oid, _)| oid).chain(logged.dropped).collect()
}

fn state_of(path: &Path, name: &str) -> String {
    match fs::read_link(path) {
        Ok(target) => format!(
            "the link to tablespace {name} leads to {}, which is not there",
            target.display()
        ),
        Err(_) => format!("the link to tablespace {name} is not there"),
    }
}

/// To the directory that fits, where only one does.
fn command(path: &Path, beside: &[(PathBuf, String)]) -> String {
    let directory = match beside {
        [(only, _)] => shell_word(&only.display().to_string()),
        _ => "DIRECTORY".to_owned(),
    };
    let link = shell_word(&path.display().to_string());
    format!("ln -sfn {directory} {link}")
}

/// Directories beside those to which links lead, or led, that hold the files of the tablespace: a
/// user who made one of them often made the others there. Whether one is a copy nobody can see.
fn beside(cluster: &Cluster, pgdata: &Path, oid: Oid) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(pgdata.join("pg_tblspc")).into_iter().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let taken: BTreeSet<PathBuf> = links.collect();
    let parents: BTreeSet<&Path> = taken.iter().filter_map(|own| own.parent()).collect();
    let all = parents.into_iter().flat_map(|parent| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).take(TRIED_MAX)
    });
    let free = all.filter(|path| !taken.contains(path));
    let mut found: Vec<(PathBuf, String)> = free
        .filter_map(|path| {
            let holds = files_of(cluster, oid, &path).ok()?;
            Some((path, holds))
        })
        .collect();
    found.sort();
    found
}
