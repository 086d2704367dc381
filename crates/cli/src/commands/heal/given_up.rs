//! Pages that nothing proves: which of them may be given up whole. One that is sound by itself
//! keeps its rows, whatever accuses it; and what accuses it may be no more than that a relation map
//! is lost, without which no catalog of its database is read.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::inventory::default_home;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, LpFlags, Oid, Page};
use pgclinic_model::document::NotHealed;
use pgclinic_model::{plural, verb_of};
use pgclinic_surgery::start_again::{StartOptions, not_cured};

use super::elsewhere::OF_A_NAMELESS_INDEX;
use super::evidence::Search;
use crate::exit::Failure;

const MAP_FILE: &str = "pg_filenode.map";
/// How a finding of the rule begins in a reason.
const LOST_ROW: &str = "relation-lost: ";

/// Why a page is not offered to be given up that no lost map excuses.
pub(super) const SOUND_BY_ITSELF: &str = "the page is sound as a whole, so that giving it up is not offered: single rows go with --kill, and the others stay";

/// What a page says of itself, without any catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnState {
    /// It holds nothing.
    Zero,
    /// Its header, its checksum or where its line pointers lead is wrong, or nothing can be read.
    Broken,
    /// Nothing of that is wrong.
    Sound,
}

/// The state of a page as it stands on the disk, where it could be read.
pub(super) fn own_state(
    bytes: Option<&[u8]>,
    block: BlockNo,
    has_checksums: Option<bool>,
) -> OwnState {
    let Some((bytes, page)) = bytes.and_then(|bytes| Some((bytes, Page::parse(bytes)?))) else {
        return OwnState::Broken;
    };
    if page.is_zeroed() {
        return OwnState::Zero;
    }
    let has_wrong_checksum =
        has_checksums == Some(true) && page.pd_checksum() != page_checksum(bytes, block);
    if page.is_new() || has_wrong_checksum || !page.header_is_sane_to_the_server() {
        return OwnState::Broken;
    }
    let mut items = page.line_pointers();
    let leads_nowhere = items
        .any(|(_, pointer)| pointer.flags() == LpFlags::Normal && page.item(pointer).is_none());
    if leads_nowhere {
        OwnState::Broken
    } else {
        OwnState::Sound
    }
}

/// The map of this database, where it cannot be read: nothing that follows from one of its catalogs
/// is known.
pub(super) fn lost_map(cluster: &Cluster, number: Oid) -> Option<String> {
    let home = default_home(cluster, number)?;
    let map = cluster.relation_map(home).ok();
    let is_right = map.is_some_and(|map| map.is_right());
    (!is_right).then(|| format!("{}/{MAP_FILE}", home.folder))
}

/// Why a sound page of a database whose map is lost is not given up.
pub(super) fn may_be_accused_in_vain(map: &str) -> String {
    format!(
        "{map}, which leads to the catalogs of its database, cannot be used: what accuses the page may be no more than that, and nothing on it is to be given up before the map is back"
    )
}

impl Search<'_, '_> {
    /// Says of each relation map, version file and link to a tablespace that stays lost why these
    /// files do not give it back. Maps stand first: what else is found in their databases may
    /// follow from them.
    pub(super) fn explain_lost_files(&self, elsewhere: &mut Vec<NotHealed>) -> Result<(), Failure> {
        let bar = self.bar();
        let options = StartOptions {
            pgdata: self.pgdata,
            threads: self.arguments.load.threads(),
            progress: &bar,
            temp_folder: &self.world.temp_folder,
            tablespace_maps: &[],
        };
        let lost = not_cured(self.cluster, &options);
        bar.finish();
        for mut own in lost? {
            // Directories of databases in a tablespace are lost with its link.
            let below = format!("{}/", own.path);
            let is_of_it =
                |other: &mut NotHealed| other.path == own.path || other.path.starts_with(&below);
            let same = elsewhere.extract_if(.., is_of_it);
            let same: Vec<NotHealed> = same.collect();
            own.why
                .splice(0..0, same.iter().flat_map(|other| other.why.clone()));
            own.commands
                .extend(same.into_iter().flat_map(|other| other.commands));
            elsewhere.push(own);
        }
        elsewhere.sort_by_key(|own| !own.path.ends_with(MAP_FILE));
        Ok(())
    }

    /// Without the map of its database nothing leads to pg_class: rows that it lost are no entries
    /// beside that of the map. They are looked for again when the map is back.
    pub(super) fn fold_into_maps(&self, all: &mut Vec<NotHealed>) {
        for database in self.cluster.databases.keys() {
            let map = lost_map(self.cluster, *database);
            let place = map.and_then(|map| all.iter().position(|own| own.path == map));
            let Some(place) = place else { continue };
            let homes = self.cluster.homes.iter();
            let homes = homes.filter(|home| home.database == *database);
            let folders: Vec<String> = homes.map(|home| format!("{}/", home.folder)).collect();
            let is_its = |path: &str| folders.iter().any(|own| path.starts_with(own));
            let follows = |own: &mut NotHealed| is_its(&own.path) && is_of_lost_rows(own);
            let folded = all.extract_if(place + 1.., follows).count();
            if let Some(own) = all.get_mut(place).filter(|_| folded > 0) {
                own.why.push(format!(
                    "{} {} not listed: rows of pg_class are missed in a file that may not be its own",
                    plural(folded, "other file"),
                    verb_of(folded, "are")
                ));
            }
        }
    }
}

/// Its rows in `pg_class` are missed, and nothing else.
fn is_of_lost_rows(own: &NotHealed) -> bool {
    let is_of_rows = |why: &String| why.starts_with(LOST_ROW) || why == OF_A_NAMELESS_INDEX;
    let is_more = |why: &String| why.starts_with("and ") && why.ends_with(" of this file");
    let mut reasons = own.why.iter();
    own.blocks.is_empty()
        && !own.needs_loss
        && reasons.any(|why| why.starts_with(LOST_ROW))
        && reasons.all(|why| is_of_rows(why) || is_more(why))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;

    fn page() -> Vec<u8> {
        let row = TupleBuilder::new(1).data(&[7; 8]).finish();
        PageBuilder::new(8192, &[]).item(&row).finish(3)
    }

    #[test]
    fn only_a_page_that_fails_by_itself_is_broken() {
        let state = |bytes: &[u8]| own_state(Some(bytes), 3, Some(true));
        assert_eq!(state(&page()), OwnState::Sound);
        assert_eq!(state(&[0; 8192]), OwnState::Zero);
        assert_eq!(own_state(None, 3, Some(true)), OwnState::Broken);
        let mut flipped = page();
        flipped[8000] ^= 1;
        assert_eq!(state(&flipped), OwnState::Broken);
        assert_eq!(own_state(Some(&flipped), 3, Some(false)), OwnState::Sound);
        let mut without_header = page();
        without_header[..24].fill(0xFF);
        let state = own_state(Some(&without_header), 3, Some(false));
        assert_eq!(state, OwnState::Broken);
    }
}
