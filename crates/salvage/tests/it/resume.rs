//! A salvage into a folder that was cut off goes on where it ended, and its account is that of one
//! run.

use pgclinic_model::Progress;

use crate::common;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{options, salvaged};
use pgclinic_salvage::{SalvageError, end_of_work, salvage};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{Quiet, open, seed, server};

/// Somebody presses Ctrl-C after so many bytes.
struct Impatient(AtomicU64);

impl Progress for Impatient {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, bytes: u64) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(bytes), Ordering::Relaxed);
    }
    fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(!name.ends_with(".part"), "{name}");
        found.push((name, std::fs::read(&path).expect("a file")));
    }
    found.sort();
    found
}

#[test]
fn what_is_whole_is_not_done_again() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let folder = tempfile::tempdir().expect("a directory");
    let (once, twice) = (folder.path().join("once"), folder.path().join("twice"));
    let at_once = salvaged(&pgdata, &options(&once, "copy"));

    let mut options = options(&twice, "copy");
    let account = salvage(
        &open(&pgdata),
        &options,
        &Impatient(AtomicU64::new(2 << 20)),
    );
    assert!(account.expect("begun").interrupted);
    let before = tables(&twice.join("clinic"));
    assert!(!before.is_empty());
    // What lies there is not overwritten by accident.
    let refused = salvage(&open(&pgdata), &options, &Quiet);
    assert!(matches!(refused, Err(SalvageError::NotEmpty(_))));
    options.resume = true;
    let mut others = options.clone();
    others.generated = true;
    let refused = salvage(&open(&pgdata), &others, &Quiet);
    assert!(matches!(refused, Err(SalvageError::Unsuitable(_))));

    std::fs::write(twice.join("clinic/left.copy.part"), "half a file").expect("written");
    let account = salvage(&open(&pgdata), &options, &Quiet).expect("gone on");
    assert_eq!(account, at_once);
    assert_eq!(tables(&twice.join("clinic")), tables(&once.join("clinic")));
    end_of_work(&twice).expect("removed");
    assert!(!twice.join("salvage.progress").exists());
}
