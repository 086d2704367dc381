//! What `amcheck` finds on a cluster that was hurt in many rows at once, we find at the same line
//! pointers: each injury of rows hurts a page of its own.

use crate::parity::heap::Trial;

/// Injuries of rows after which a server still reads the rest of the page. Multixacts beyond their
/// bounds are left out: from 16 on `amcheck` itself stops at them with an error.
const ROWS: &[&str] = &[
    "line-pointer-redirect",
    "line-pointer-redirect-to-itself",
    "line-pointer-unused",
    "line-pointer-length-tiny",
    "line-pointer-misaligned",
    "xmin-in-the-future",
    "xmin-before-freeze",
    "xmax-in-the-future",
    "xmax-before-freeze",
    "multixact-lock-only-flipped",
    "multixact-updater",
    "hot-update-leaves-page",
    "heap-only-flag-cleared",
    "heap-only-flag-set",
    "redirects-to-one-row",
    "redirect-unused",
    "hot-updated-flag-cleared",
    "update-chain-circle",
    "hot-update-without-xmax",
    "hot-update-to-itself",
    "updated-row-rolled-back",
    "xmin-hint-invalid",
    "xmax-hint-invalid",
    "moved-flag-set",
    "attribute-count",
    "attribute-count-smaller",
    "null-flag-set",
    "null-flag-cleared",
    "hoff-larger",
    "hoff-smaller",
    "hoff-misaligned",
    "varlena-length-beyond",
    "toast-relation",
    "external-flag",
];

const TRIAL: Trial = Trial {
    injuries: ROWS,
    kinds: "'r', 'm', 't'",
    check_toast: false,
    pages_hurt: 25,
    rows_found: 15,
};

#[test]
fn of_15() {
    TRIAL.passes_on(15);
}

#[test]
fn of_18() {
    TRIAL.passes_on(18);
}
