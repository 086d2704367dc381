//! From an injury and a wish to a patch that can be shown before it is written.

use pgclinic_cluster::Cluster;
use pgclinic_format::build::seal_page;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::{FileKind, Place};
use pgclinic_model::plan::{Change, Patch};

use crate::error::{Error, Result};
use crate::injuries::{FAMILIES, INJURIES};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{InjuryTarget, InjuryTargetKind};
use crate::injury_targets::{InjuryTargets, Within, is_of_cluster};

const CHECKSUM_MISMATCH: &str = "checksum-mismatch";

/// What a person asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InjuryOptions {
    /// Only in this database.
    pub database: Option<String>,
    /// Only this relation, as `schema.name` or `name`.
    pub relation: Option<String>,
    /// Only this block.
    pub block: Option<BlockNo>,
    /// Only this row.
    pub item: Option<u16>,
    /// Chooses place and damage.
    pub seed: u64,
    /// Make the checksum of the hurt page true again.
    pub sealed: bool,
}

/// An injury that was planned and not yet made.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedInjury {
    /// What is to be written, sealed if that was asked for.
    pub patch: Patch,
    /// The damage. `must` already holds `checksum-mismatch` where the page's checksum will be seen
    /// to be wrong.
    pub damage: Damage,
    /// Where.
    pub place: Place,
    /// The page's checksum is true; always so where pages carry none.
    pub sealed: bool,
    /// It is a table's page that says of itself that all its rows are visible: no scan asks about
    /// their transactions.
    pub is_all_visible: bool,
}

/// Every injury.
pub fn injuries() -> &'static [Injury] {
    INJURIES
}

/// Every injury with its family, the name of the file that it stands in, in the order of
/// [`injuries`].
pub fn injuries_by_family() -> impl Iterator<Item = (&'static str, &'static Injury)> {
    FAMILIES.iter().copied().zip(INJURIES)
}

/// The injury of this name.
pub fn injury_named(name: &str) -> Result<&'static Injury> {
    let found = INJURIES.iter().find(|injury| injury.name == name);
    found.ok_or_else(|| Error::Unknown {
        what: "injury",
        name: name.into(),
    })
}

/// Plans an injury of a cluster that is not to be asked again.
pub fn plan_injury(
    cluster: &Cluster,
    injury: &Injury,
    options: &InjuryOptions,
) -> Result<PlannedInjury> {
    plan_on(&InjuryTargets::new(cluster), injury, options)
}

/// The same with catalogs and files that were read before.
pub fn plan_on(
    targets: &InjuryTargets<'_>,
    injury: &Injury,
    options: &InjuryOptions,
) -> Result<PlannedInjury> {
    plan_apart(targets, injury, options, &|_| true)
}

/// The same at the first place that is `free`.
pub(crate) fn plan_apart(
    targets: &InjuryTargets<'_>,
    injury: &Injury,
    options: &InjuryOptions,
    free: &dyn Fn(&PlannedInjury) -> bool,
) -> Result<PlannedInjury> {
    let within = Within {
        database: options.database.clone(),
        relation: options.relation.clone(),
        block: options.block,
        item: options.item,
    };
    let wants = injury.wants;
    for at in targets.find(wants, &within, options.seed ^ spread(injury.name)) {
        let Some(target) = targets.open(&at, options.item) else {
            continue;
        };
        let damage = (injury.damage)(&target, options.seed);
        let planned = damage.map(|damage| planned(&target, damage, wants, options));
        if let Some(planned) = planned.filter(free) {
            return Ok(planned);
        }
    }
    Err(Error::NoTarget {
        injury: injury.name.into(),
        within: described(options),
    })
}

/// Different injuries begin at different places, also with the same seed (FNV-1a).
fn spread(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// What is written for a damage, sealed if that was asked for.
pub(crate) fn planned(
    target: &InjuryTarget<'_>,
    mut damage: Damage,
    wants: Wants,
    options: &InjuryOptions,
) -> PlannedInjury {
    let sealed = options.sealed && wants.page_injury;
    let patch = if sealed && target.has_checksums() {
        seal(&damage.patch, target)
    } else {
        damage.patch.clone()
    };
    let wrong = wants.page_injury && target.has_checksums() && !checksum_is_right(&patch, target);
    if wrong && !damage.must.contains(&CHECKSUM_MISMATCH) {
        damage.must.insert(0, CHECKSUM_MISMATCH);
    }
    PlannedInjury {
        is_all_visible: is_all_visible(target, &patch),
        place: place_of(target, &damage),
        sealed: !wrong,
        patch,
        damage,
    }
}

/// Where was looked, in words.
pub(crate) fn described(options: &InjuryOptions) -> String {
    let relation = options
        .relation
        .as_deref()
        .map(|name| format!("relation {name}"));
    let database = options
        .database
        .as_deref()
        .map(|name| format!("database {name}"));
    let whole = relation
        .or(database)
        .unwrap_or_else(|| "the cluster".into());
    match (options.block, options.item) {
        (Some(block), Some(item)) => format!("{whole}, block {block}, item {item}"),
        (Some(block), None) => format!("{whole}, block {block}"),
        (None, Some(item)) => format!("{whole}, item {item} of any page"),
        (None, None) => whole,
    }
}

/// The target's bytes with a patch of its page laid over them.
pub fn patched(patch: &Patch, target: &InjuryTarget<'_>) -> Vec<u8> {
    let mut bytes = target.bytes.clone();
    for change in &patch.changes {
        let Change::Bytes {
            path,
            offset,
            after,
            ..
        } = change
        else {
            continue;
        };
        let start = offset
            .checked_sub(target.offset)
            .and_then(|start| usize::try_from(start).ok());
        let slot = start.and_then(|start| bytes.get_mut(start..start.saturating_add(after.len())));
        if let Some(slot) = slot.filter(|_| *path == target.path) {
            slot.copy_from_slice(after);
        }
    }
    bytes
}

/// Extends a patch of one page so that the page's checksum is true afterwards.
pub fn seal(patch: &Patch, target: &InjuryTarget<'_>) -> Patch {
    let mut bytes = patched(patch, target);
    seal_page(&mut bytes, target.block);
    Damage::bytes(target, &bytes, "")
        .map(|damage| damage.patch)
        .unwrap_or_default()
}

/// As a reader of the page will see it: a page without `pd_upper` counts as new, and has none.
fn checksum_is_right(patch: &Patch, target: &InjuryTarget<'_>) -> bool {
    let bytes = patched(patch, target);
    let mut sealed = bytes.clone();
    seal_page(&mut sealed, target.block);
    Page::parse(&bytes).is_none_or(Page::is_new) || bytes == sealed
}

fn is_all_visible(target: &InjuryTarget<'_>, patch: &Patch) -> bool {
    let bytes = patched(patch, target);
    let page = Page::parse(&bytes).filter(|_| target.kind == InjuryTargetKind::HeapPage);
    page.is_some_and(|page| page.pd_flags() & PD_ALL_VISIBLE != 0)
}

fn place_of(target: &InjuryTarget<'_>, damage: &Damage) -> Place {
    let page = crate::injury_targets::is_page(target.kind);
    let of_cluster = kind_of(target) == FileKind::Wal
        || target.kind == InjuryTargetKind::ControlFile
        || is_of_cluster(target.kind);
    let catalog = target.catalog.filter(|_| !of_cluster);
    let relation = target.relation;
    Place {
        path: damage
            .patch
            .changes
            .first()
            .map_or_else(|| target.path.clone(), |change| change.path().to_owned()),
        database: catalog.and_then(|catalog| catalog.database_name.clone()),
        schema: relation.map(|relation| relation.schema.clone()),
        relation: relation.map(|relation| relation.name.clone()),
        database_oid: catalog.map(|catalog| catalog.database),
        relation_oid: relation.map(|relation| relation.oid),
        filenode: target.files.map(|files| files.filenode),
        kind: kind_of(target),
        fork: target.files.map(|files| files.fork),
        block: page.then_some(target.block),
        item: damage.item,
        attribute: None,
        bytes: damage.bytes,
    }
}

fn kind_of(target: &InjuryTarget<'_>) -> FileKind {
    use pgclinic_cluster::RelKind;
    match (target.kind, target.relation.map(|relation| relation.kind)) {
        (InjuryTargetKind::ControlFile, _) => FileKind::ControlFile,
        (InjuryTargetKind::RelationMap, _) => FileKind::RelationMap,
        (
            InjuryTargetKind::WalCheckpoint
            | InjuryTargetKind::WalHead
            | InjuryTargetKind::WalOlder,
            _,
        ) => FileKind::Wal,
        (
            InjuryTargetKind::TransactionLog
            | InjuryTargetKind::MultixactOffsets
            | InjuryTargetKind::MultixactMembers,
            _,
        ) => FileKind::Slru,
        (
            InjuryTargetKind::VersionFile
            | InjuryTargetKind::PreparedTransaction
            | InjuryTargetKind::ReplicationSlot
            | InjuryTargetKind::ReplicationOrigins,
            _,
        )
        | (_, None) => FileKind::File,
        (_, Some(RelKind::Table)) => FileKind::Table,
        (_, Some(RelKind::Index)) => FileKind::Index,
        (_, Some(RelKind::Toast)) => FileKind::Toast,
        (_, Some(RelKind::Sequence)) => FileKind::Sequence,
        (_, Some(RelKind::MaterializedView)) => FileKind::MaterializedView,
        (_, Some(RelKind::PartitionedTable | RelKind::WithoutStorage | RelKind::Unknown(_))) => {
            FileKind::Unknown
        }
    }
}
