//! Prepared transactions of both copies. A shutdown writes the file of each, so that copies which
//! were shut down at one checkpoint have the same ones.

use std::collections::BTreeSet;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{Copy, DiffDocument, DiffFile, Difference, FileKind, NotChecked};
use pgclinic_source::read_all;

use crate::page_comparison::Side;
use crate::standing::{Standing, standing};

/// Longer ones are told as unread.
const BYTES_MAX: u64 = 64 << 20;

/// Compares their files, or says why not.
pub(crate) fn compare(sides: (Side<'_>, Side<'_>), document: &mut DiffDocument) {
    let [a, b] = [sides.0.cluster, sides.1.cluster].map(files);
    if standing(sides) == Standing::Apart {
        if !a.is_empty() || !b.is_empty() {
            document.coverage.not_checked.push(NotChecked {
                what: "prepared transactions: pg_twophase".into(),
                why: "they are compared where both copies were shut down at one checkpoint".into(),
                inherent: true,
            });
        }
        return;
    }
    let lost = |copy| move |path: &String| lone(path, copy);
    let told = a.difference(&b).map(lost(Copy::B));
    let told = told.chain(b.difference(&a).map(lost(Copy::A)));
    document.files.extend(told);
    for path in a.intersection(&b) {
        document.coverage.files += 1;
        let bytes = [sides.0, sides.1]
            .map(|side| read_all(side.cluster.source().as_ref(), path, BYTES_MAX));
        let difference = match bytes {
            [Ok(a), Ok(b)] if a == b => continue,
            [Ok(_), Ok(_)] => Difference::Conflict,
            _ => Difference::Unreadable,
        };
        document.files.push(DiffFile {
            difference,
            copy: None,
            why: "both copies were shut down at one checkpoint with this transaction prepared"
                .into(),
            ..lone(path, Copy::A)
        });
    }
}

/// By their paths.
fn files(cluster: &Cluster) -> BTreeSet<String> {
    let files = cluster.prepared_files().into_iter();
    files.map(|(path, _)| path).collect()
}

/// Only one copy has the file.
fn lone(path: &str, lacking: Copy) -> DiffFile {
    DiffFile {
        path: path.into(),
        kind: FileKind::File,
        difference: Difference::Lost,
        copy: Some(lacking),
        pages: Vec::new(),
        why: "both copies were shut down at one checkpoint, and only one has the prepared transaction"
            .into(),
    }
}
