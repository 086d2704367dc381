//! A panic that is there to be found: when no fuzzer finds it, finding nothing elsewhere means
//! nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let [b'c', b'o', b'a', b'l', ..] = bytes {
        panic!("the canary sings");
    }
});
