//! What `amcheck` finds in long values that were hurt, each in another way, we find at the same
//! row.

use crate::parity::heap::Trial;

/// Injuries of chunks and of the pointers to them.
const LONG_VALUES: &[&str] = &[
    "chunk-number-negative",
    "chunk-number-shifted",
    "chunk-empty",
    "chunk-shortened",
    "chunk-compressed",
    "chunk-external",
    "toast-size",
    "toast-value",
    "compressed-size",
    "external-flag",
    "toast-relation",
];

const TRIAL: Trial = Trial {
    injuries: LONG_VALUES,
    kinds: "'r', 'm'",
    check_toast: true,
    pages_hurt: 9,
    rows_found: 8,
};

#[test]
fn of_15() {
    TRIAL.passes_on(15);
}

#[test]
fn of_18() {
    TRIAL.passes_on(18);
}
