//! A chain of base backups: a full one and incremental ones, in order (PostgreSQL 17 and later).
//!
//! The labels hold a chain together: an incremental one says where the backup began that it builds
//! on. What `pg_combinebackup` refuses is refused here. Truth: `check_backup_label_files` and
//! `check_control_files` in `src/bin/pg_combinebackup/pg_combinebackup.c`.

use std::sync::Arc;

use pgclinic_source::{BackupChain, ChainShape, Source};

use crate::backup::BackupStart;
use crate::build::Build;
use crate::cluster::Link;
use crate::error::OpenError;
use crate::wal::LabelState;

/// Why this link is none, with its name.
pub(crate) fn refused(name: &str, why: &str) -> OpenError {
    OpenError::Chain {
        why: format!("{name}: {why}"),
    }
}

/// Where the backup with this label began, and where the one that it builds on.
pub(crate) fn starts(
    name: &str,
    label: &LabelState,
) -> Result<(BackupStart, Option<BackupStart>), OpenError> {
    match label {
        LabelState::Read(label) => Ok(BackupStart::of_label(label)),
        LabelState::None => {
            let why = "there is no backup_label: only base backups on which no server has started make a chain";
            Err(refused(name, why))
        }
        LabelState::Wrong(line) => {
            let why = format!("line {line} of backup_label is not as it must be");
            Err(refused(name, &why))
        }
        LabelState::Unreadable(why) => Err(refused(name, why)),
    }
}

/// The files of all links as those of one cluster.
///
/// # Errors
///
/// The links are no chain.
pub(crate) fn combined(links: &[Link]) -> Result<Arc<dyn Source>, OpenError> {
    hold_together(links)?;
    same_cluster(links)?;
    Ok(Arc::new(BackupChain::new(sources(links), shape(links)?)?))
}

/// The first is a full backup, and each other one builds on the one before it.
fn hold_together(links: &[Link]) -> Result<(), OpenError> {
    let follows_from =
        |pair: &[Link]| matches!(pair, [before, own] if own.follows == Some(before.start));
    let begins = links.first().is_some_and(|first| first.follows.is_none());
    if begins && links.windows(2).all(follows_from) {
        return Ok(());
    }
    Err(OpenError::Chain {
        why: why_not(links),
    })
}

/// What keeps the links from being a chain: too many full ones, one missing, or another order.
fn why_not(links: &[Link]) -> String {
    let mut full = links.iter().filter(|link| link.follows.is_none());
    let first = full.next();
    if let (Some(one), Some(other)) = (first, full.next()) {
        let (one, other) = (&one.name, &other.name);
        return format!("{one} and {other} are both full backups; a chain has one, at its begin");
    }
    for link in links {
        let twins = links.iter().filter(|other| other.start == link.start);
        if twins.count() > 1 {
            return format!("{} is named twice, or a copy of it", link.name);
        }
    }
    for link in links {
        let Some(point) = link.follows else { continue };
        if links.iter().all(|other| other.start != point) {
            return format!(
                "a link is missing: {} builds on a backup that began at {point}, and none of those named did",
                link.name
            );
        }
    }
    let order = in_order(links);
    if order.len() < links.len() {
        let lost = links
            .iter()
            .find(|link| !order.contains(&link.name.as_str()));
        let lost = lost.map_or("", |link| link.name.as_str());
        return format!(
            "{lost} does not belong into one row with the others: two backups build on the same one"
        );
    }
    let order = order.join(", ");
    format!("the backups are named in the wrong order; in order they are {order}")
}

/// Names from the full one on, as far as one builds on the other.
fn in_order(links: &[Link]) -> Vec<&str> {
    let mut order = Vec::new();
    let mut next = links.iter().find(|link| link.follows.is_none());
    while let Some(link) = next.filter(|_| order.len() < links.len()) {
        order.push(link.name.as_str());
        next = links.iter().find(|other| other.follows == Some(link.start));
    }
    order
}

/// All links are of one cluster and one version.
fn same_cluster(links: &[Link]) -> Result<(), OpenError> {
    let identity = |link: &Link| {
        let control = link.cluster.control.trusted()?;
        Some((control.system_identifier, control.catalog_version_no))
    };
    let mut known = links
        .iter()
        .filter_map(|link| Some((link, identity(link)?)));
    let Some((first, own)) = known.next() else {
        return Ok(());
    };
    match known.find(|(_, other)| *other != own) {
        None => Ok(()),
        Some((link, other)) => Err(OpenError::Chain {
            why: format!(
                "{} is of the cluster {}, and {} of the cluster {}: they are no chain",
                first.name, own.0, link.name, other.0
            ),
        }),
    }
}

fn sources(links: &[Link]) -> Vec<Arc<dyn Source>> {
    let sources = links.iter().map(|link| Arc::clone(link.cluster.source()));
    sources.collect()
}

/// Sizes from the newest control file that can be trusted: all links were built alike.
fn shape(links: &[Link]) -> Result<ChainShape, OpenError> {
    let mut trusted = links.iter().rev();
    let known = trusted.find(|link| link.cluster.control.trusted().is_some());
    let build = known
        .map(|link| link.cluster.build)
        .ok_or_else(|| OpenError::Chain {
            why: "no control file of the chain can be trusted: how long a block is is unknown"
                .into(),
        })?;
    Ok(shape_of(build))
}

fn shape_of(build: Build) -> ChainShape {
    ChainShape {
        block_bytes: build.block_size,
        segment_blocks: u32::try_from(build.segment_blocks()).unwrap_or(u32::MAX),
    }
}
