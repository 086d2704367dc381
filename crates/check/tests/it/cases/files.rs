//! Files that cannot be what their names say: odd lengths, another database's bytes, a million
//! blocks, a cluster that was built with options nobody uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_format::build::put_u32;
use pgclinic_format::control_file;
use pgclinic_model::{Finding, Level, Verdict};
use pgclinic_source::{Overlay, OverlayPatch};
use pgclinic_testkit::{checked, directory};

use crate::cases::scene::{PAGE, Scene, bytes, damage, replaced, seal};

fn cut(path: &str, len: u64) -> OverlayPatch {
    OverlayPatch::Cut {
        path: path.into(),
        len,
    }
}

#[test]
fn odd_lengths_and_strange_bytes() {
    let scene = Scene::new();
    let docs = scene.path("docs");
    let other = scene.read("base/1/1259");
    let map = scene.read(&format!("{docs}_vm"));
    let mut old_map = vec![0xFF; map.len()];
    old_map[..24].copy_from_slice(&map[..24]);
    seal(&mut old_map);
    // What is done to the table or beside it, and whether that is damage.
    let trials = [
        ("three bytes", vec![cut(&docs, 3)], true),
        (
            "one byte short",
            vec![cut(&docs, 3 * PAGE as u64 - 1)],
            true,
        ),
        ("no byte", vec![cut(&docs, 0)], true),
        ("another database's", replaced(&docs, other.clone()), true),
        (
            "a map of another day",
            vec![bytes(&format!("{docs}_vm"), 0, old_map)],
            true,
        ),
        (
            "a map of three bytes",
            vec![cut(&format!("{docs}_vm"), 3)],
            true,
        ),
        (
            "a map of a heap",
            replaced(&format!("{docs}_fsm"), other),
            false,
        ),
        (
            "three bytes of nobody",
            vec![bytes("base/1/77777", 0, vec![7; 3])],
            false,
        ),
        (
            "text in a name of a file",
            vec![bytes("base/1/1259_vm.1x", 0, vec![7; 3])],
            false,
        ),
        (
            "an empty segment behind",
            vec![bytes(&format!("{docs}.1"), 0, vec![])],
            false,
        ),
        (
            "an odd segment behind",
            vec![bytes(&format!("{docs}.7"), 0, vec![7; PAGE])],
            true,
        ),
    ];
    for (words, patches, is_damage) in trials {
        let document = scene.checked(patches);
        let found: Vec<&Finding> = damage(&document).collect();
        assert_eq!(!found.is_empty(), is_damage, "{words}: {found:?}");
    }
}

/// Files whose length is a claim: they grow by zeros without end. What claims it is told, or it is
/// room for rows.
#[test]
fn a_million_blocks() {
    const BLOCKS: u64 = 131_072;
    let scene = Scene::new();
    let grown = |path: &str| OverlayPatch::Grow {
        path: path.into(),
        len: BLOCKS * PAGE as u64,
    };
    let table = scene.checked(vec![grown(&scene.path("docs"))]);
    assert_eq!(damage(&table).count(), 0, "pages of zeros are legal");
    assert!(table.coverage.zeroed_pages > BLOCKS - 1000);
    let names = [
        "measurements_dedup",
        "places_gist_at",
        "places_spgist_at",
        "docs_gin_words",
        "measurements_hash",
        "measurements_brin",
    ];
    let small = |path: &str| OverlayPatch::Grow {
        path: path.into(),
        len: 4096 * PAGE as u64,
    };
    let indexes = names.map(|name| small(&scene.path(name)));
    let document = scene.checked(indexes.to_vec());
    let found: BTreeSet<_> = damage(&document)
        .filter_map(|finding| finding.place.relation.clone())
        .collect();
    assert!(
        found.iter().all(|name| name == "measurements_hash"),
        "{found:?}"
    );
}

/// A page that is remembered for the next insert may be none.
const HARMLESS: [&str; 1] = ["places_spgist_at 28 4294967295"];

/// Heads of indexes that claim what no file holds.
#[test]
fn heads_that_claim_too_much() {
    let scene = Scene::new();
    // Index, and the words of its head that are changed.
    let claims: [(&str, &[usize]); 5] = [
        ("measurements_dedup", &[32, 36, 40, 44]),
        ("waiting_words", &[24, 28, 32, 36, 40]),
        ("measurements_hash", &[44, 48, 52, 56, 60, 68, 76, 80]),
        ("measurements_brin", &[32, 36]),
        ("places_spgist_at", &[28]),
    ];
    let mut missed = BTreeSet::new();
    for value in [1_000_000, u32::MAX] {
        for turn in 0..8 {
            let mut patches = Vec::new();
            let mut changed = Vec::new();
            for (name, words) in claims {
                let Some(at) = words.get(turn) else {
                    continue;
                };
                let path = scene.path(name);
                let mut head = scene.read(&path);
                put_u32(&mut head, *at, value);
                seal(&mut head);
                patches.push(bytes(&path, 0, head));
                changed.push((name, at));
            }
            let document = scene.checked_database(patches);
            let found: BTreeSet<&str> = document
                .findings
                .iter()
                .filter_map(|finding| finding.place.relation.as_deref())
                .collect();
            let unseen = changed
                .into_iter()
                .filter(|(name, _)| !found.contains(name));
            missed.extend(unseen.map(|(name, at)| format!("{name} {at} {value}")));
        }
    }
    assert_eq!(missed, BTreeSet::from(HARMLESS.map(str::to_owned)));
}

/// Sizes that no build has are refused in a sentence or told; sizes that are only rare are used.
#[test]
fn unknown_build_options() {
    let scene = Scene::new();
    let control = scene.read("global/pg_control");
    // Block, segment, page and segment of WAL, names, keys, TOAST chunk, large object: behind the
    // double at byte 208.
    let words = [216, 220, 224, 228, 232, 236, 240, 244];
    let mut silent = Vec::new();
    for at in words {
        for value in [0, 3000, u32::MAX] {
            let mut file = control.clone();
            put_u32(&mut file, at, value);
            assert!(control_file::seal(&mut file), "a control file");
            let patches = vec![bytes("global/pg_control", 0, file)];
            let overlay = Overlay::new(directory(&scene.pgdata), patches).expect("plain paths");
            match Cluster::open(Arc::new(overlay)) {
                Ok(cluster) => {
                    let document = checked(&cluster, Level::Structure);
                    assert!(document.coverage.is_balanced());
                    if document.verdict == Verdict::Healthy {
                        silent.push((at, value));
                    }
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    // No file of the seed is longer than 3000 blocks.
    assert_eq!(silent, [(220, 3000)]);
}
