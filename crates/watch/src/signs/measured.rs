//! Exact figures from the files (`watch --measure RATE`): what statistics of the server only
//! estimate.

use pgclinic_model::Labels;
use pgclinic_model::document::{SignState, SignUnit, SignValue};

use super::{of, whole};
use crate::assess::Sample;
use crate::measured::{LargeObjects, MeasuredFigures, MeasuredStatus};
use crate::need::Need;
use crate::sign::{Family, Gather, Sign, Source};

const PLAIN: Sign = Sign {
    family: Family::Catalogs,
    needs: &[Need::Measure],
    cost: "Nothing for the server but its disk, or nothing at all with --files.",
    unit: SignUnit::Bytes,
    labels: &["relation"],
    ..Sign::PLAIN
};

pub(super) const DEAD: Sign = Sign {
    name: "measured-dead-bytes",
    metric: "pgclinic_measured_dead_bytes",
    summary: "bytes of dead row versions, of the relations that have most of them",
    source: Source::Computed(&[], |sample| Ok(bytes(&figures(sample)?.dead_bytes))),
    normal: "A fifth of a table at most, by autovacuum's defaults.",
    meaning: "Vacuum has not come, or somebody holds it back: a long transaction, a slot, a prepared transaction.",
    settled_by: "pgclinic measure of the data directory; oldest-transaction.",
    ..PLAIN
};

pub(super) const FREE: Sign = Sign {
    name: "measured-free-bytes",
    metric: "pgclinic_measured_free_bytes",
    summary: "bytes that new rows and entries may take, of the relations that have most of them",
    source: Source::Computed(&[], |sample| Ok(bytes(&figures(sample)?.free_bytes))),
    normal: "As much as one round of changes fills again.",
    meaning: "Space that vacuum gave back to the relation and not to the file system: scans read it all.",
    settled_by: "pgclinic measure of the data directory, twice.",
    ..PLAIN
};

pub(super) const DENSITY: Sign = Sign {
    name: "measured-index-density",
    metric: "pgclinic_measured_index_density_ratio",
    summary: "how full the leaves of an index are, of the emptiest of 1 MiB or more",
    unit: SignUnit::Ratio,
    source: Source::Computed(&[], |sample| {
        let own = figures(sample)?.index_density.iter();
        Ok(own.map(|(name, own)| of("relation", name, *own)).collect())
    }),
    gather: Gather::Min,
    normal: "0.9 where keys only grow, about 0.7 where they come at random.",
    meaning: "Deleted or random keys have left leaves half empty: more of the index is read and kept in memory than needed.",
    settled_by: "pgclinic measure of the data directory; pgclinic lab run for the way in which keys are made.",
    ..PLAIN
};

pub(super) const CATALOGS: Sign = Sign {
    name: "measured-catalog-bytes",
    metric: "pgclinic_measured_catalog_bytes",
    summary: "bytes of the largest system catalogs and their indexes, and how many are dead",
    source: Source::Computed(&[], catalogs),
    labels: &["relation", "part"],
    normal: "Some MiB; dead ones a small part.",
    meaning: "Temporary tables and DDL fill catalogs that every statement reads.",
    settled_by: "pgclinic measure catalog-cost of the script; relations-created.",
    ..PLAIN
};

pub(super) const TOAST: Sign = Sign {
    name: "measured-toast-bytes",
    metric: "pgclinic_measured_toast_bytes",
    summary: "bytes of TOASTed values as they are stored, by method, in the row or outside of it",
    source: Source::Computed(&[], |sample| {
        let own = figures(sample)?.toast_bytes.iter();
        Ok(own
            .map(|(name, own)| of("method", name, *own as f64))
            .collect())
    }),
    labels: &["method"],
    normal: "The method of default_toast_compression for most.",
    meaning: "Values of the old method stay until their rows are written again; plain ones outside were too random to be compressed.",
    settled_by: "pgclinic measure of the data directory with --try-compression; pgclinic lab run toast-compression.",
    ..PLAIN
};

pub(super) const LARGE_OBJECTS: Sign = Sign {
    name: "measured-large-objects",
    metric: "pgclinic_measured_large_objects",
    summary: "large objects, and how many of them no column refers to",
    unit: SignUnit::Count,
    source: Source::Computed(&[], |sample| {
        large_objects(sample, |own| {
            [own.count.saturating_sub(own.orphans), own.orphans]
        })
    }),
    labels: &["database", "part"],
    normal: "0, or no orphans.",
    meaning: "Deleting a row does not delete the object that it refers to: orphans are copied by every dump and upgrade.",
    settled_by: "pgclinic measure of the data directory; vacuumlo -n.",
    ..PLAIN
};

pub(super) const LARGE_OBJECT_BYTES: Sign = Sign {
    name: "measured-large-object-bytes",
    metric: "pgclinic_measured_large_object_bytes",
    summary: "bytes of large objects, and of those that no column refers to",
    source: Source::Computed(&[], |sample| {
        large_objects(sample, |own| {
            [own.bytes.saturating_sub(own.orphan_bytes), own.orphan_bytes]
        })
    }),
    labels: &["database", "part"],
    normal: "0, or no orphans.",
    meaning: "As for measured-large-objects.",
    settled_by: "pgclinic measure of the data directory; vacuumlo.",
    ..PLAIN
};

pub(super) const AGE: Sign = Sign {
    name: "measured-age",
    metric: "pgclinic_measured_age_seconds",
    summary: "age of the figures: since the measurement ended, or since the files of a backup were written",
    unit: SignUnit::Seconds,
    labels: &[],
    source: Source::Computed(&[], |sample| {
        let own = status(sample)?;
        Ok(vec![whole(
            own.clock - own.files_at.or(own.ended_at).unwrap_or(own.asked_since),
        )])
    }),
    assess: Some(age),
    normal: "An hour, as --measure-every says, and the time that one takes.",
    meaning: "The figures are of that moment.",
    settled_by: "The reason beside it.",
    ..PLAIN
};

fn status<'a>(sample: &Sample<'a>) -> Result<&'a MeasuredStatus, String> {
    sample
        .measured
        .ok_or_else(|| "nothing was measured yet".to_owned())
}

fn figures<'a>(sample: &Sample<'a>) -> Result<&'a MeasuredFigures, String> {
    let own = status(sample)?;
    match (&own.stopped, own.ended_at) {
        (_, Some(_)) => Ok(&own.figures),
        (Some(why), None) => Err(why.clone()),
        (None, None) => Err("the first measurement is not over".to_owned()),
    }
}

fn bytes(counts: &[(String, u64)]) -> Vec<SignValue> {
    let counts = counts.iter();
    counts
        .map(|(name, own)| of("relation", name, *own as f64))
        .collect()
}

/// Those that something refers to, and the others.
fn large_objects(
    sample: &Sample<'_>,
    parts: fn(&LargeObjects) -> [u64; 2],
) -> Result<Vec<SignValue>, String> {
    let own = figures(sample)?.large_objects.iter();
    let values = own.flat_map(|own| {
        let pairs = ["referred", "orphan"].into_iter().zip(parts(own));
        pairs.map(|(part, value)| SignValue {
            labels: Labels::from([
                ("database".to_owned(), own.database.clone()),
                ("part".to_owned(), part.to_owned()),
            ]),
            value: value as f64,
            ..SignValue::default()
        })
    });
    Ok(values.collect())
}

fn catalogs(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let own = figures(sample)?.catalogs.iter();
    let values = own.flat_map(|(name, all, dead)| {
        let rest = all.saturating_sub(*dead);
        [("dead", *dead), ("other", rest)].map(|(part, bytes)| SignValue {
            labels: Labels::from([
                ("relation".to_owned(), name.clone()),
                ("part".to_owned(), part.to_owned()),
            ]),
            value: bytes as f64,
            ..SignValue::default()
        })
    });
    Ok(values.collect())
}

fn age(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let own = sample.measured?;
    if let Some(why) = &own.stopped {
        return Some((SignState::Warning, why.clone()));
    }
    let age = own.ended_at? - own.files_at?;
    let words = format!(
        "the files were {:.1} hours old when they were measured",
        age / 3600.0
    );
    Some((SignState::Ok, words))
}
