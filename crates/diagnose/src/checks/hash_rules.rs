//! The rules of [`super::hash_chains`]: what pages of a hash index can say against each other.

use pgclinic_model::{Rule, Severity};

/// A page of the wrong type or bucket.
pub static HASH_PAGE_MISPLACED: Rule = Rule {
    name: "hash-page-misplaced",
    severity: Severity::Damage,
    summary: "another page of a hash index belongs into this block",
    explain: "\
The meta page of a hash index tells for every block what stands there: the first page of a certain bucket, an \
overflow page, or a bitmap. The page in this block says something else of itself.

A search for a value whose bucket begins here finds nothing, or stops with `index \"…\" contains corrupted \
page at block …` or `contains unexpected zero page at block …`.

Usual causes: a page of another block was written here, the page was lost and is zero or an old copy, or the \
meta page is from another day than the rest.

The table is not touched by this. Take a copy of the file for the search of the cause, then `REINDEX` the \
index.",
};

/// A link that leads nowhere.
pub static HASH_CHAIN_BROKEN: Rule = Rule {
    name: "hash-chain-broken",
    severity: Severity::Damage,
    summary: "the pages of a bucket of a hash index are not chained",
    explain: "\
A bucket that does not fit on one page goes on on overflow pages; each names the one before and the one \
behind it, and the bucket it belongs to. Here a page names a block that is no overflow page of this bucket, \
one that does not name it back, or one that was passed already; or a page says that it belongs to a bucket, \
and no page of that bucket leads to it.

A search by this index misses the entries behind the break, without a message, or stops with `index \"…\" \
contains corrupted page at block …`. Where the chain turns in a circle, a search never ends, and neither does \
`VACUUM`.

Usual causes: a page was overwritten or put back from another day, or the last bytes of a page were damaged.

The table is not touched by this. `REINDEX` the index; if `VACUUM` hangs on it, drop the index first.",
};

/// A code in a foreign bucket.
pub static HASH_BUCKET_WRONG: Rule = Rule {
    name: "hash-bucket-wrong",
    severity: Severity::Damage,
    summary: "an entry of a hash index stands in the wrong bucket",
    explain: "\
The last bits of a hash code choose the bucket. Here an entry stands in a bucket that its code does not lead \
to, and no split of the bucket accounts for it.

A search looks into the bucket that the code leads to, so it never finds this entry: a query by this index \
returns fewer rows than there are, without a message.

Usual causes: a bit of the hash code flipped, or meta page and buckets are from different days.

The table is not touched by this. `REINDEX` the index.",
};

/// Ends of a split that do not know of each other.
pub static HASH_SPLIT_STATE: Rule = Rule {
    name: "hash-split-state",
    severity: Severity::Damage,
    summary: "a bucket of a hash index says something impossible about its last split",
    explain: "\
When a hash index grows, one bucket after the other is split in two. While this lasts, both ends are marked, \
and both remember the last bucket that there was at that time. A split that was broken off stays marked until \
somebody ends it; that is in order. Here one end is marked and the other one is not, or the remembered bucket \
cannot be.

The server ends such a split with the next insertion and moves entries that must stay, or skips entries in \
searches because it takes them for copies. A remembered bucket above the last one makes every search of this \
bucket read the meta page again for ever.

Usual causes: a bit of the flags flipped, or one of the two pages is from another day.

The table is not touched by this. `REINDEX` the index.",
};

/// A bit that lies.
pub static HASH_BITMAP_WRONG: Rule = Rule {
    name: "hash-bitmap-wrong",
    severity: Severity::Damage,
    summary: "a bitmap of a hash index is wrong about an overflow page",
    explain: "\
A hash index keeps a bit for each of its overflow pages: in use or free. Here the bit of a page that belongs \
to a bucket says that it is free, or the other way round.

A page that is marked as free will be emptied and given to another bucket as soon as one needs room: its \
entries are lost then, and two chains lead to it. A free page that is marked as in use is only lost room, and \
told as a warning.

Usual causes: a bit flipped, or the bitmap is from another day than the rest.

The table is not touched by this. `REINDEX` the index before anybody writes to the table.",
};
