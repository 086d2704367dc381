//! Catalogs damaged so that names or columns are unknown: what can be looked at by structure alone
//! is looked at.

use pgclinic_model::{CheckDocument, Verdict};
use pgclinic_source::OverlayPatch;

use crate::cases::scene::{PAGE, Scene, bytes, replaced, seal};

const CATALOGS: [&str; 6] = [
    "pg_class",
    "pg_attribute",
    "pg_type",
    "pg_index",
    "pg_namespace",
    "pg_opclass",
];

/// Every page with other bytes in its second half, and a true checksum.
fn half_of_each(file: &[u8], byte: u8) -> Vec<u8> {
    let mut file = file.to_vec();
    for page in file.chunks_exact_mut(PAGE) {
        page[PAGE / 2..].fill(byte);
    }
    seal(&mut file);
    file
}

/// Line pointers in the opposite order: each number names another row.
fn reversed(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for page in file.chunks_exact_mut(PAGE) {
        let lower = usize::from(u16::from_le_bytes([page[12], page[13]])).clamp(24, PAGE);
        let (pointers, _) = page[24..lower].as_chunks_mut::<4>();
        pointers.reverse();
    }
    seal(&mut file);
    file
}

fn holds(document: &CheckDocument, words: &str) {
    assert_ne!(document.verdict, Verdict::Healthy, "{words}");
    let coverage = &document.coverage;
    assert!(coverage.pages > 1000, "{words}: {coverage:?}");
}

#[test]
fn catalogs_of_a_database_in_ruins() {
    let scene = Scene::new();
    for name in CATALOGS {
        let path = scene.path(name);
        let file = scene.read(&path);
        let ruins = [
            ("noise", vec![0xA5; file.len()]),
            ("zeros in halves", half_of_each(&file, 0)),
            ("noise in halves", half_of_each(&file, 0xFF)),
        ];
        for (words, ruin) in ruins {
            let document = scene.checked_database(vec![bytes(&path, 0, ruin)]);
            holds(&document, &format!("{name}, {words}"));
        }
        let turned = scene.checked_database(vec![bytes(&path, 0, reversed(&file))]);
        assert!(turned.coverage.pages > 1000, "{name}, reversed");
    }
}

type Ruin = fn(&str, usize) -> Vec<OverlayPatch>;

const RUINS: [Ruin; 3] = [
    |path, _| vec![OverlayPatch::Remove { path: path.into() }],
    |path, _| replaced(path, Vec::new()),
    |path, len| vec![bytes(path, 0, vec![0; len])],
];

#[test]
fn all_catalogs_of_a_database_lost() {
    let scene = Scene::new();
    let files = CATALOGS.map(|name| scene.path(name));
    for ruin in RUINS {
        let patches = files
            .iter()
            .flat_map(|path| ruin(path, scene.read(path).len()));
        let document = scene.checked_database(patches.collect());
        holds(&document, "all catalogs");
    }
}

/// The catalogs that all databases share, and the maps that lead to them.
#[test]
fn what_leads_to_the_catalogs_in_ruins() {
    let scene = Scene::new();
    let map = format!("base/{}/pg_filenode.map", scene.database);
    let (databases, spaces) = (scene.shared("pg_database"), scene.shared("pg_tablespace"));
    for path in [&databases, &spaces, "global/pg_filenode.map", &map] {
        let len = scene.read(path).len();
        for ruin in RUINS {
            let document = scene.checked(ruin(path, len));
            holds(&document, path);
        }
    }
}
