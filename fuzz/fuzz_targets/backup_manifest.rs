//! Any bytes as a backup manifest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::backup_manifest::BackupManifest;

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = BackupManifest::parse(bytes) else {
        return;
    };
    for file in manifest.files.values() {
        if let Some((algorithm, sum)) = &file.sum {
            assert_eq!(sum.len(), algorithm.bytes());
        }
    }
});
