//! Names of rules in groups: what may fire beside the rule that an injury is about.

/// A group of rule names.
pub type Rules = &'static [&'static str];

/// Rules about the page header.
pub const HEADER: Rules = &[
    "new-page-with-content",
    "invalid-page-flags",
    "lower-inside-header",
    "lower-beyond-upper",
    "upper-beyond-special",
    "special-beyond-page",
    "special-misaligned",
    "wrong-page-size",
    "wrong-layout-version",
    "special-size-mismatch",
    "lsn-beyond-wal",
    "prune-xid-in-the-future",
];

/// Rules about line pointers.
pub const LINE_POINTERS: Rules = &[
    "item-beyond-page",
    "item-before-upper",
    "item-misaligned",
    "items-overlap",
    "redirect-target",
    "redirect-in-index",
    "unused-with-storage",
    "item-too-short",
];

/// Rules about tuple headers.
pub const TUPLE_HEADER: Rules = &[
    "hoff-mismatch",
    "hoff-beyond-tuple",
    "too-many-attributes",
    "unused-infomask-bits",
    "multixact-marked-committed",
    "xmax-committed-and-invalid",
    "hot-update-leaves-page",
    "ctid-impossible",
    "xmin-in-the-future",
    "xmin-before-freeze",
    "xmax-in-the-future",
    "xmax-before-freeze",
    "multixact-in-the-future",
    "multixact-before-minimum",
];

/// Rules about attributes.
pub const ATTRIBUTES: Rules = &[
    "attribute-beyond-tuple",
    "varlena-length",
    "varlena-tag",
    "compressed-value",
    "toast-pointer",
];

/// Rules about the rows of a TOAST relation.
pub const TOAST_CHUNKS: Rules = &[
    "toasted-toast-chunk",
    "chunk-number-impossible",
    "chunk-size-impossible",
];

/// Rules about index pages.
pub const INDEX_PAGES: Rules = &["index-page-kind", "btree-link-beyond-end"];

/// Rules about sequences.
pub const SEQUENCES: Rules = &["sequence-magic", "sequence-tuple", "sequence-value"];

/// Rules about files that are too short or gone.
pub const SHORT_FILES: Rules = &[
    "short-segment",
    "extra-segment",
    "map-beyond-end",
    "pages-beyond-end",
];

/// Rules that speak when a catalog is read from the wrong file, or from none.
pub const LOST_CATALOGS: Rules = &[
    "relation-map-sense",
    "missing-file",
    "orphan-file",
    "missing-init-fork",
    "pages-beyond-end",
    "map-beyond-end",
    "empty-index",
];
