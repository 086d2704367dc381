//! Pages that nothing proves: which of them may be given up whole. One that is sound by itself
//! keeps its rows, whatever accuses it; and what accuses it may be no more than that a relation map
//! is lost, without which no catalog of its database is read.

use pgclinic_cluster::Cluster;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, LpFlags, Oid, Page};
use pgclinic_model::document::NotHealed;
use pgclinic_surgery::start_again::{StartOptions, maps_not_cured};

use super::evidence::Search;
use crate::exit::Failure;

const MAP_FILE: &str = "pg_filenode.map";

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
    let database = cluster.databases.get(&number);
    // Only the directory in the database's own tablespace has one.
    let mut homes = cluster.homes.iter().filter(|home| {
        let is_first = database.is_some_and(|own| own.tablespace == home.tablespace);
        home.database == number && (number == 0 || is_first)
    });
    let home = homes.next()?;
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
    /// Says of each relation map that stays lost why these files do not give it back. Maps stand
    /// first: what else is found in their databases may follow from them.
    pub(super) fn explain_maps(&self, elsewhere: &mut Vec<NotHealed>) -> Result<(), Failure> {
        let mut databases = self.cluster.databases.keys();
        if !databases.any(|database| lost_map(self.cluster, *database).is_some()) {
            return Ok(());
        }
        let bar = self.bar();
        let options = StartOptions {
            pgdata: self.pgdata,
            threads: self.arguments.load.threads(),
            progress: &bar,
            temp_folder: &self.world.temp_folder,
        };
        let maps = maps_not_cured(self.cluster, &options);
        bar.finish();
        for map in maps? {
            match elsewhere.iter_mut().find(|own| own.path == map.path) {
                Some(own) => own.why.extend(map.why),
                None => elsewhere.push(map),
            }
        }
        elsewhere.sort_by_key(|own| !own.path.ends_with(MAP_FILE));
        Ok(())
    }
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
