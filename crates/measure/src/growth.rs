//! Two measurements of one cluster compared: what grows, how fast, and when a limit is reached.

use std::collections::HashMap;
use std::fmt;

use pgclinic_model::document::{
    Counters, Growth, LimitAhead, MeasureDocument, MeasuredRelation, RelationGrowth,
};

/// Transactions that may lie between the oldest that is not frozen and the next: the server stops 3
/// million before the end.
const XIDS: u64 = (1 << 31) - 3_000_000;
/// The same of multixacts.
const MULTIXACTS: u64 = (1 << 31) - 3_000_000;
/// Blocks of a relation.
const BLOCKS: u64 = u32::MAX as u64;
const DAY_S: f64 = 86_400.0;
/// Later than this is no date worth a warning: a hundred years.
const HORIZON_S: f64 = 100.0 * 365.25 * DAY_S;
/// Relations that are listed.
const LISTED_MAX: usize = 50;

/// Why two measurements cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GrowthError {
    /// They are of different clusters.
    AnotherCluster {
        /// `system_identifier` of the older one.
        old: String,
        /// That of the newer one.
        new: String,
    },
    /// No time has passed between their checkpoints.
    NoTime,
    /// The older one does not say when it was taken.
    NoCounters,
}

impl fmt::Display for GrowthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrowthError::AnotherCluster { old, new } => write!(
                f,
                "it is of another cluster: its system identifier is {old}, here it is {new}"
            ),
            GrowthError::NoTime => f.write_str(
                "its last checkpoint is not older than that of the cluster now, so there is no time in which to grow",
            ),
            GrowthError::NoCounters => f.write_str("it does not say when its last checkpoint was"),
        }
    }
}

impl std::error::Error for GrowthError {}

/// What has changed from `old` to `new`.
///
/// # Errors
/// When they are not of the same cluster, or not of different times.
pub fn growth(old: &MeasureDocument, new: &MeasureDocument) -> Result<Growth, GrowthError> {
    let identifiers = [&old.target, &new.target].map(|target| target.system_identifier.clone());
    if let [Some(old), Some(new)] = &identifiers
        && old != new
    {
        let [old, new] = [old, new].map(ToString::to_string);
        return Err(GrowthError::AnotherCluster { old, new });
    }
    let (before, now) = (old.counters, new.counters);
    if before == Counters::default() {
        return Err(GrowthError::NoCounters);
    }
    let seconds = now.time - before.time;
    if seconds <= 0 {
        return Err(GrowthError::NoTime);
    }
    let days = seconds as f64 / DAY_S;
    let a_day = |now: u64, before: u64| (now as f64 - before as f64) / days;
    let relations = relations(old, new, days);
    let sum = |of: fn(&RelationGrowth) -> f64| relations.iter().map(of).sum::<f64>();
    let mut growth = Growth {
        seconds,
        bytes_per_day: sum(|own| own.bytes_per_day),
        dead_rows_per_day: sum(|own| own.dead_rows_per_day.unwrap_or(0.0)),
        xids_per_day: a_day(now.next_xid, before.next_xid),
        multixacts_per_day: f64::from(now.next_multixact.wrapping_sub(before.next_multixact))
            / days,
        wal_bytes_per_day: a_day(now.wal_bytes, before.wal_bytes),
        limits: Vec::new(),
        relations,
    };
    growth.limits = limits(new, &growth);
    growth
        .relations
        .retain(|own| own.bytes_per_day != 0.0 || own.dead_rows_per_day.unwrap_or(0.0) != 0.0);
    growth.relations.truncate(LISTED_MAX);
    Ok(growth)
}

type Key = (u32, Option<u32>, u32);

/// By its number in the catalogs, which outlives a rewrite; by its file's, where that is unknown.
fn key(own: &MeasuredRelation) -> Key {
    let file = if own.relation_oid.is_some() {
        0
    } else {
        own.filenode
    };
    (own.database_oid, own.relation_oid, file)
}

fn relations(old: &MeasureDocument, new: &MeasureDocument, days: f64) -> Vec<RelationGrowth> {
    let before: HashMap<Key, &MeasuredRelation> =
        old.relations.iter().map(|own| (key(own), own)).collect();
    let mut grown: Vec<_> = new
        .relations
        .iter()
        .map(|own| {
            let before = before.get(&key(own)).copied();
            let dead = |own: &MeasuredRelation| own.count("table", "dead_tuple_count");
            let a_day = |now: u64, then: u64| (now as f64 - then as f64) / days;
            RelationGrowth {
                database: own.database.clone(),
                relation: own.name(),
                bytes: own.bytes,
                bytes_per_day: a_day(own.bytes, before.map_or(0, |own| own.bytes)),
                dead_rows_per_day: dead(own)
                    .map(|now| a_day(now, before.and_then(dead).unwrap_or(0))),
            }
        })
        .collect();
    grown.sort_by(|a, b| {
        let size = b.bytes_per_day.total_cmp(&a.bytes_per_day);
        size.then_with(|| a.relation.cmp(&b.relation))
    });
    grown
}

fn limits(new: &MeasureDocument, growth: &Growth) -> Vec<LimitAhead> {
    let now = new.counters;
    let ahead = |what: String, of: &str, limit: u64, stands: u64, a_day: f64| {
        let seconds = limit.saturating_sub(stands) as f64 / a_day * DAY_S;
        (a_day > 0.0 && seconds < HORIZON_S).then(|| LimitAhead {
            what,
            of: of.into(),
            limit,
            now: stands,
            reached: now
                .time
                .saturating_add_unsigned(pgclinic_model::whole(seconds)),
        })
    };
    let freeze = "the cluster, if nothing is frozen";
    let mut limits: Vec<_> = [
        ahead(
            freeze.into(),
            "transactions since the oldest one that is not frozen",
            XIDS,
            now.xid_age,
            growth.xids_per_day,
        ),
        ahead(
            freeze.into(),
            "multixacts since the oldest one that is needed",
            MULTIXACTS,
            now.multixact_age,
            growth.multixacts_per_day,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let block = u64::from(new.target.block_size.unwrap_or(8192));
    limits.extend(growth.relations.iter().filter_map(|own| {
        let largest = BLOCKS * block;
        ahead(
            own.relation.clone(),
            "bytes of a relation",
            largest,
            own.bytes,
            own.bytes_per_day,
        )
    }));
    limits.sort_by(|a, b| (a.reached, &a.what).cmp(&(b.reached, &b.what)));
    limits
}
