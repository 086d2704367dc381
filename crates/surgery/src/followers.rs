//! Names of rules in groups: what may fire beside the rule that an injury is about.

/// A group of rule names.
pub type Rules = &'static [&'static str];

/// Rules about the page header.
pub const HEADER: Rules = &[
    "new-page-with-content",
    "invalid-page-flags",
    "lower-inside-header",
    "line-pointers-lost",
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
    "ctid-out-of-range",
    "xmin-in-the-future",
    "xmin-before-freeze",
    "xmax-in-the-future",
    "xmax-before-freeze",
    "multixact-in-the-future",
    "multixact-before-minimum",
    "redirect-to-indexed-row",
    "update-chains-meet",
    "update-chain-cycle",
    "hot-flags-disagree",
    "update-outlives-row",
    "update-half-done",
    "heap-only-without-chain",
    "heap-only-not-updated",
    "hot-update-leads-nowhere",
    "xmin-hint-wrong",
    "xmax-hint-wrong",
    "multixact-flags",
    "multixact-updater",
    "moved-by-unknown-vacuum",
    "page-not-all-visible",
    "visibility-map-wrong",
];

/// Rules about update chains: a changed row may leave others of its page without their neighbours.
pub const CHAINS: Rules = &[
    "redirect-to-indexed-row",
    "update-chains-meet",
    "update-chain-cycle",
    "hot-flags-disagree",
    "update-outlives-row",
    "update-half-done",
    "heap-only-without-chain",
    "heap-only-not-updated",
    "hot-update-leads-nowhere",
];

/// Rules that compare a row with the commit log, `pg_multixact` and the flags of its page.
pub const FATES: Rules = &[
    "xmin-hint-wrong",
    "xmax-hint-wrong",
    "multixact-flags",
    "multixact-updater",
    "moved-by-unknown-vacuum",
    "page-not-all-visible",
    "visibility-map-wrong",
];

/// Rules about the length and the flags of a row, by its values.
pub const SHAPE: Rules = &[
    "bytes-after-last-value",
    "varwidth-flag-wrong",
    "null-flag-without-null",
];

/// Rules about values.
pub const VALUES: Rules = &["value-does-not-decode", "text-not-in-encoding"];

/// Rules about attributes.
pub const ATTRIBUTES: Rules = &[
    "attribute-beyond-tuple",
    "varlena-length",
    "varlena-tag",
    "compressed-value",
    "toast-pointer",
    "bytes-after-last-value",
    "varwidth-flag-wrong",
    "null-flag-without-null",
    "value-does-not-decode",
    "text-not-in-encoding",
];

/// Rules about the rows of a TOAST relation.
pub const TOAST_CHUNKS: Rules = &[
    "toasted-toast-chunk",
    "chunk-number-out-of-range",
    "chunk-size-out-of-range",
];

/// Rules about index pages.
pub const INDEX_PAGES: Rules = &["index-page-kind", "btree-link-beyond-end"];

/// Rules about how the pages of GiST and SP-GiST indexes hang together.
pub const INDEX_TREES: Rules = &[
    "gist-downlink",
    "gist-page-unreachable",
    "gist-key-not-covered",
    "spgist-downlink",
    "spgist-page-unreachable",
    "spgist-value-outside-node",
];

/// Rules about what a changed key or row says against the entries of its indexes.
pub const ENTRIES: Rules = &[
    "index-entry-without-row",
    "row-without-index-entry",
    "index-entry-of-other-key",
    "index-entry-duplicate",
    "unique-key-duplicate",
];

/// Rules about hash indexes.
pub const HASH: Rules = &[
    "hash-meta-inconsistent",
    "hash-page-flags",
    "hash-entry-damaged",
    "hash-code-order",
    "hash-page-misplaced",
    "hash-chain-broken",
    "hash-bucket-wrong",
    "hash-split-state",
    "hash-bitmap-wrong",
    "hash-code-wrong",
];

/// Rules about sequences.
pub const SEQUENCES: Rules = &[
    "sequence-magic",
    "sequence-tuple",
    "sequence-value",
    "sequence-beyond-bounds",
];

/// Rules about files that are too short or gone.
pub const SHORT_FILES: Rules = &[
    "file-truncated",
    "short-segment",
    "extra-segment",
    "map-beyond-end",
    "pages-beyond-end",
];

/// Rules that speak when a catalog is read from the wrong file, or from none.
pub const LOST_CATALOGS: Rules = &[
    "relation-map-inconsistent",
    "missing-file",
    "orphan-file",
    "missing-init-fork",
    "pages-beyond-end",
    "map-beyond-end",
    "empty-index",
];

/// Rules about the write-ahead log.
pub const WAL: Rules = &[
    "wal-segment-missing",
    "wal-page-header",
    "wal-record-checksum",
    "wal-record-broken",
    "checkpoint-record-missing",
];

/// Rules that speak when nothing tells which transactions committed.
pub const TRANSACTION_STATUS: Rules = &[
    "slru-file-missing",
    "slru-file-truncated",
    "slru-file-zeroed",
    "multixact-offset-out-of-range",
    "multixact-member-out-of-range",
    "xmin-hint-wrong",
    "xmax-hint-wrong",
    "multixact-flags",
    "update-outlives-row",
    "update-half-done",
    "heap-only-without-chain",
    "update-chains-meet",
    "hot-flags-disagree",
    "page-not-all-visible",
    "visibility-map-wrong",
    "catalog-reference-missing",
    "catalog-attributes-missing",
    "catalog-key-duplicate",
    "relhasindex-false-with-index",
    "catalog-rows-disagree",
];

/// Rules about btrees, and about their entries against rows.
pub const BTREE: Rules = &[
    "btree-page-flags",
    "btree-tuple-shape",
    "btree-item-order",
    "btree-root",
    "btree-sibling",
    "btree-level",
    "btree-page-order",
    "btree-downlink",
    "btree-downlink-missing",
    "btree-child-bounds",
    "unique-key-duplicate",
    "index-entry-without-row",
    "row-without-index-entry",
    "index-entry-of-other-key",
    "index-entry-duplicate",
];
