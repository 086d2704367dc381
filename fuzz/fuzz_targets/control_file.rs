//! Any bytes as a control file: parsed or refused, and a sealed one carries the right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::control_file::{self, ControlFile};

fuzz_target!(|bytes: &[u8]| {
    match ControlFile::parse(bytes) {
        Ok(control) => {
            let _ = (
                control.crc_is_right(),
                control.segment_bytes(),
                control.checksums(),
            );
            let _ = format!("{control:?} {}", control.state);
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
    let mut edited = bytes.to_vec();
    if control_file::seal(&mut edited)
        && let Ok(control) = ControlFile::parse(&edited)
    {
        assert!(
            control.crc_is_right(),
            "sealed with a checksum that is not its own"
        );
    }
});
