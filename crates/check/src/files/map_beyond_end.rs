//! The visibility map says something about pages behind the end of the table.

use pgclinic_cluster::inventory::{Inventory, is_orphan};
use pgclinic_cluster::{Comparison, DatabaseContext, ForkFiles, MarkedBeyond};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MAP_BEYOND_END: Rule = Rule::from_page(include_str!("../../rules/map-beyond-end.md"));

/// See [`MAP_BEYOND_END`].
pub struct MapBeyondEnd;

impl DatabaseCheck for MapBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MAP_BEYOND_END] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if !database.cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let inventory = Inventory::new(database);
        let (maps, tables): (Vec<_>, Vec<_>) = database
            .forks
            .iter()
            .filter(|files| {
                files.temporary.is_none()
                    && !files.segments.is_empty()
                    && matches!(files.fork, Fork::Vm | Fork::Main)
            })
            .partition(|files| files.fork == Fork::Vm);
        let tables: std::collections::HashMap<_, _> = tables
            .into_iter()
            .map(|files| ((files.home.tablespace, files.filenode), files))
            .collect();
        for map in maps {
            let Some(table) = tables.get(&(map.home.tablespace, map.filenode)) else {
                continue;
            };
            let Some((marked, blocks)) = beyond(database, map, table) else {
                continue;
            };
            let (page, block) = (marked.map_page, marked.last);
            if is_orphan(database, map) {
                continue;
            }
            let message = format!(
                "the visibility map marks block {block} of a table of {blocks}",
                blocks = plural(blocks, "block")
            );
            let mut place = inventory.place_of(map, segment_of(database, page));
            place.block = Some(page);
            let draft = Draft::new(&MAP_BEYOND_END, message).fact("marked_block", block);
            let draft = draft.fact("table_blocks", blocks).place(place);
            out.add(draft.follows_files(table, Fork::Main));
        }
    }
}

fn segment_of(database: &DatabaseContext<'_>, block: BlockNo) -> u32 {
    let per_segment = database.cluster.build.segment_blocks();
    let segment = u64::from(block).checked_div(per_segment).unwrap_or(0);
    u32::try_from(segment).unwrap_or(0)
}

/// What the map marks behind the table's end, and the table's blocks.
fn beyond(
    database: &DatabaseContext<'_>,
    map: &ForkFiles,
    table: &ForkFiles,
) -> Option<(MarkedBeyond, u64)> {
    let build = database.cluster.build;
    let blocks = table.blocks(build.block_size, build.segment_bytes);
    let source = database.cluster.source().as_ref();
    let is_summed = database.cluster.checksums() == Some(true);
    let marked = MarkedBeyond::of(source, map, (build, is_summed), blocks, |_| true)?;
    Some((marked, blocks))
}
