//! `could not open file … (target block …)`: a segment is missing or short.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct MissingSegment;

impl ServerMessage for MissingSegment {
    fn name(&self) -> &'static str {
        "missing-segment"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001", "58P01"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["could not open file {path} (target block {block})"]
    }

    fn meaning(&self) -> &'static str {
        "\
Relations are kept in files of 1 GB (unless built otherwise): `16384`, `16384.1`, `16384.2` and so on. \
The server wanted a block that lies in a later segment, and this segment is missing, or the one before \
it is not full (\"previous segment is only N blocks\").

Either the **file is gone or cut**: deleted, lost in a restore, left out by a copying tool. Or \
**something points too far**: a damaged index entry, TID, `t_ctid` or sibling link names a block number \
that never existed. Then the target block is far beyond the relation's size: compare it with \
`pg_relation_size` divided by the block size.

The server believes that a relation ends at the first segment that is not full. So when a *middle* \
segment is lost, a sequential scan simply stops there and returns fewer rows **without any error**.

At risk are the rows of the missing segment and of all behind it, up to 131,072 blocks of 8 kB each.

**Never** create an empty file in its place, never `VACUUM` such a table: it would cut the later \
segments off."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.mend(), names.save_the_rest()]);
        steps
    }
}
