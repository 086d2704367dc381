//! A plan: what each request would do to the bytes that are there, as data that a person reads and
//! the writer carries out.

use std::collections::BTreeMap;

use pgclinic_cluster::wal::{Evidence, missing_segments};
use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles};
use pgclinic_format::build::{put_u16, seal_page};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::visibility_map::{ALL_FROZEN, ALL_VISIBLE, bits, heap_blocks_per_page};
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::document::{
    AttributePlace, Cure, CureOutcome, CureRequest, FieldChange, HealBasis, PageChange, Place,
    PlanStep,
};
use pgclinic_model::plan::{Patch, Safety};

use super::control::control_file_hash;
use super::dangling::{Gone, IndexesOfTable};
use super::databases::Databases;
use super::draft::{Draft, MapBits};
use super::heap_place::{HeapPlace, named_files};
use super::proven_pages::ProvenPages;
use super::restore_end::{RESTORE_END, restore_end};
use super::restore_segment::{RESTORE_SEGMENT, restore_segment};
use super::restore_status::restore_status;
use super::working_pages::WorkingPages;
use super::{CuredFiles, cure_named, fields, preview};
use crate::error::{Error, Result};
use crate::operate::FileBeside;

const FLAGS_AT: usize = 10;
/// What fields of the header are of.
const PAGE_HEADER: &str = "page header";

/// Cures that were planned for the bytes of a cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct HealPlan {
    /// The cluster at that moment.
    pub basis: HealBasis,
    /// What was asked for.
    pub request: Vec<CureRequest>,
    /// Why it cannot be carried out here.
    pub obstacles: Vec<String>,
    /// The cures, one for each request.
    pub cures: Vec<Cure>,
    /// What to know before.
    pub warnings: Vec<String>,
    /// What to do afterwards.
    pub follow_up: Vec<PlanStep>,
    /// All changes of all cures together.
    pub patch: Patch,
    /// What the patch appends, for beside the journal.
    pub beside: Vec<FileBeside>,
}

/// Plans what is asked for, in its order; nothing is written. Pages come back only where `proven`
/// has them.
///
/// # Errors
/// When the control file cannot be trusted, or one of the requests cannot be done: then with the
/// reason.
pub fn plan_heal(
    cluster: &Cluster,
    requests: &[CureRequest],
    proven: &ProvenPages,
) -> Result<HealPlan> {
    let basis = basis_of(cluster)?;
    let mut databases = Databases::new(cluster);
    let mut named = Vec::new();
    for request in requests {
        let files = known_cure(request)?.files;
        named.push(match files {
            CuredFiles::StatusLogs | CuredFiles::Wal => None,
            _ => Some(named_files(request, files, &mut databases, cluster)?),
        });
    }
    let mut pages = WorkingPages::default();
    let (mut cures, mut gone) = (Vec::new(), Vec::new());
    let (mut extensions, mut file_changes) = (Vec::new(), Vec::new());
    let mut beside = Vec::new();
    for (request, named) in requests.iter().zip(&named) {
        let Some(named) = named else {
            let own = (cluster, basis.system_identifier.as_str());
            let is_wal = known_cure(request)?.files == CuredFiles::Wal;
            let restore = if is_wal {
                restore_segment
            } else {
                restore_status
            };
            let (cure, changes) = restore(own, request, proven)?;
            file_changes.extend(changes);
            cures.push(cure);
            gone.push(None);
            continue;
        };
        let database = databases.get(named.database);
        let job = Job {
            cluster,
            database: &database,
            files: &named.files,
            identifier: &basis.system_identifier,
            proven,
        };
        if request.cure == RESTORE_END {
            let end = restore_end(&job, request)?;
            extensions.extend(end.changes);
            beside.extend(end.beside);
            cures.push(end.cure);
            gone.push(None);
            continue;
        }
        let (cure, taken) = job.cure(request, &mut pages)?;
        cures.push(cure);
        gone.push(taken);
    }
    count_entries(&databases, &mut cures, &gone);
    // What became of transactions comes first: hint bits follow from it, and not the other way.
    let mut patch = Patch {
        changes: file_changes,
    };
    patch.changes.extend(pages.patch().changes);
    patch.changes.extend(extensions);
    Ok(HealPlan {
        basis,
        request: requests.to_vec(),
        obstacles: obstacles(cluster, requests),
        warnings: preview::warnings(&cures),
        follow_up: preview::follow_up(&cures),
        patch,
        beside,
        cures,
    })
}

fn known_cure(request: &CureRequest) -> Result<&'static super::Cure> {
    cure_named(&request.cure).ok_or_else(|| Error::Unknown {
        what: "cure",
        name: request.cure.clone(),
    })
}

fn basis_of(cluster: &Cluster) -> Result<HealBasis> {
    let control = cluster.control.trusted().ok_or_else(|| Error::Cure {
        place: "global/pg_control".into(),
        why: "the control file cannot be read or its checksum is wrong: nobody knows which cluster this is, and whether it was shut down".into(),
    })?;
    Ok(HealBasis {
        system_identifier: control.system_identifier.to_string(),
        control_file: control_file_hash(cluster)?,
        requests: None,
    })
}

/// Recovery would read pages that were healed and write over them: with a full-page image the cure
/// is gone, without one a record meets a page that it does not expect, which stops recovery. On a
/// copy that is no better. WAL for that recovery is no obstacle.
fn obstacles(cluster: &Cluster, requests: &[CureRequest]) -> Vec<String> {
    let is_wal = |own: &CureRequest| own.cure == RESTORE_SEGMENT;
    let is_wal_alone = !requests.is_empty() && requests.iter().all(is_wal);
    if !cluster.needs_recovery() || is_wal_alone {
        return Vec::new();
    }
    let state = cluster
        .control
        .trusted()
        .map(|control| control.state.to_string());
    let state = state.unwrap_or_default();
    let next = match missing_segments(cluster, &Evidence::default()) {
        Ok(_) => "Let the server start and shut it down, on a copy if need be; of a standby, heal the primary".into(),
        Err(why) => format!(
            "WAL breaks before its end ({why}): a server that starts refuses, or loses what came after without a word. Name more WAL with --wal, or take the rows out with pgclinic salvage first"
        ),
    };
    vec![format!(
        "the cluster was not shut down in good order (its state is: {state}): recovery at the next start would replay WAL over what is healed. {next}"
    )]
}

/// What a cure takes away from index entries.
struct Taken {
    gone: Gone,
    is_exact_without_entries: bool,
}

/// What one request is planned with.
pub(super) struct Job<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) database: &'a DatabaseContext<'a>,
    pub(super) files: &'a ForkFiles,
    identifier: &'a str,
    pub(super) proven: &'a ProvenPages,
}

impl Job<'_> {
    fn cure(
        &self,
        request: &CureRequest,
        pages: &mut WorkingPages,
    ) -> Result<(Cure, Option<Taken>)> {
        let own = known_cure(request)?;
        let cluster = self.cluster;
        let page = pages.page(cluster, self.files, request.block)?.clone();
        let relation = self
            .database
            .catalog
            .by_file(self.files.home.tablespace, self.files.filenode);
        let place = HeapPlace {
            cluster,
            database: self.database,
            files: self.files,
            relation,
            block: request.block,
            bytes: &page.now,
            item: request.item,
            column: request.column.as_deref(),
            proven: self.proven.page(&self.files.path(0), request.block),
        };
        place.check_kind(own.files)?;
        let mut draft = (own.draft)(&place)?;
        self.doubt_checksum(&page.before, request.block, &mut draft);
        let (changes, map_field) = self.put(&mut draft, request.block, pages)?;
        let anatomy = |bytes: &[u8]| {
            let is_table =
                matches!(own.files, CuredFiles::Tables | CuredFiles::Proven) && !place.is_index();
            let taken_apart = || fields::anatomy_of(bytes, request.block, relation, self.database);
            is_table.then(taken_apart).flatten()
        };
        let (before, after) = (anatomy(&page.now), anatomy(&draft.page));
        let mut fields = match (&before, &after) {
            (Some(before), Some(after)) => fields::changes(before, after),
            _ => Vec::new(),
        };
        // Beside garbage nobody reads line pointers and tuples one by one.
        fields.retain(|field| !draft.replaces_page || field.of == PAGE_HEADER);
        fields.extend(map_field);
        let rows = draft.rows.iter().zip(before.iter().cycle());
        let rows = rows.map(|(row, before)| preview::row_of(*row, request.block, before));
        let lost = draft.rows.iter().filter(|row| row.lost).count() as u64;
        let cure = Cure {
            id: self.id(request, &page.before),
            name: own.name.into(),
            safety: draft.safety,
            place: with_column(place.place(), &place),
            summary: draft.summary,
            evidence: draft.evidence,
            fields,
            pages: changes,
            rows: rows.collect(),
            rows_lost: (!draft.rows_unknown).then_some(lost),
            dangling: Vec::new(),
            warnings: draft.warnings,
            start: None,
            outcome: CureOutcome::Planned,
            findings: Vec::new(),
        };
        let taken = draft.gone.map(|gone| Taken {
            gone,
            is_exact_without_entries: draft.is_exact_without_entries,
        });
        Ok((cure, taken))
    }

    /// A checksum that is made true hides what else changed on the page.
    fn doubt_checksum(&self, before: &[u8], block: BlockNo, draft: &mut Draft) {
        let Some(page) = Page::parse(before) else {
            return;
        };
        let is_settled = draft.replaces_page || draft.is_confirmed_by_checksum;
        if page.is_new() || is_settled || self.cluster.checksums() != Some(true) {
            return;
        }
        let computed = pgclinic_format::checksum::page_checksum(before, block);
        if page.pd_checksum() != computed {
            draft.safety = draft.safety.min(Safety::Lossy);
            draft.is_exact_without_entries = false;
            draft.warnings.push(format!(
                "the stored checksum {} of the page does not match its computed checksum {computed}: something else changed the page, and the checksum will be made true over that too",
                page.pd_checksum()
            ));
        }
    }

    /// Takes the page and, where its bits are to be cleared, the map's page.
    fn put(
        &self,
        draft: &mut Draft,
        block: BlockNo,
        pages: &mut WorkingPages,
    ) -> Result<(Vec<PageChange>, Option<FieldChange>)> {
        let (mut changes, mut field) = (Vec::new(), None);
        if draft.map == MapBits::Cleared {
            clear_flag(&mut draft.page);
            let map = self.clear_map(block, pages)?;
            if let Some((change, old)) = map {
                changes.push(change);
                field = Some(FieldChange {
                    of: "visibility map".into(),
                    name: format!("bits of block {block}"),
                    before: map_words(old),
                    after: map_words(0),
                });
            }
        }
        self.seal(&mut draft.page, block);
        let page = pages.page(self.cluster, self.files, block)?;
        changes.extend(page.put(draft.page.clone()));
        Ok((changes, field))
    }

    /// pd_lsn is left as it is on every page. It names the WAL up to which the page is known to be
    /// written, and nothing of this is in WAL: a larger one could lie past the end of the WAL,
    /// which stops the server's next write of the page, and a smaller one would let recovery apply
    /// records twice.
    fn seal(&self, page: &mut [u8], block: BlockNo) {
        let is_new = Page::parse(page).is_none_or(Page::is_new);
        if self.cluster.checksums() == Some(true) && !is_new {
            seal_page(page, block);
        }
    }

    /// The map's page without the bits of the block, and what they were.
    fn clear_map(
        &self,
        block: BlockNo,
        pages: &mut WorkingPages,
    ) -> Result<Option<(PageChange, u8)>> {
        let build = self.cluster.build;
        let Some(map) = self.map() else {
            return Ok(None);
        };
        let len = usize::try_from(build.block_size).unwrap_or(usize::MAX);
        let per_page = heap_blocks_per_page(len).max(1);
        let (of_map, within) = (u64::from(block) / per_page, u64::from(block) % per_page);
        let of_map = BlockNo::try_from(of_map).unwrap_or(BlockNo::MAX);
        if u64::from(of_map) >= map.blocks(build.block_size, build.segment_bytes) {
            return Ok(None);
        }
        let page = pages.page(self.cluster, map, of_map)?;
        let old = Page::parse(&page.now)
            .and_then(|page| bits(page, within))
            .unwrap_or(0);
        if old == 0 {
            return Ok(None);
        }
        let mut after = page.now.clone();
        let at = pgclinic_format::page::HEADER_BYTES
            .saturating_add(usize::try_from(within / 4).unwrap_or(usize::MAX));
        if let Some(byte) = after.get_mut(at) {
            *byte &= !(3 << ((within % 4) * 2));
        }
        self.seal(&mut after, of_map);
        Ok(page.put(after).map(|change| (change, old)))
    }

    fn map(&self) -> Option<&ForkFiles> {
        let own = self.files;
        self.database.forks.iter().find(|files| {
            files.home == own.home
                && files.filenode == own.filenode
                && files.fork == Fork::Vm
                && files.temporary.is_none()
        })
    }

    pub(super) fn id(&self, request: &CureRequest, on_disk: &[u8]) -> String {
        id_of((self.identifier, &self.files.path(0)), request, on_disk)
    }
}

/// Cluster, cure, place and the bytes on disk, so that an id that somebody typed means what was
/// shown, and nothing else.
pub(super) fn id_of(
    (identifier, path): (&str, &str),
    request: &CureRequest,
    on_disk: &[u8],
) -> String {
    let mut hasher = blake3::Hasher::new();
    let item = request
        .item
        .map(|item| item.to_string())
        .unwrap_or_default();
    let words = [
        identifier,
        &request.cure,
        path,
        &request.block.to_string(),
        &item,
        request.column.as_deref().unwrap_or_default(),
    ];
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    hasher.update(on_disk);
    let hex = hasher.finalize().to_hex();
    hex.chars().take(ID_CHARS).collect()
}

/// A person types it: long enough that no other cure of a plan has it by chance.
const ID_CHARS: usize = 8;

fn with_column(place: Place, of: &HeapPlace<'_>) -> Place {
    let columns = of.relation.and_then(|relation| relation.columns.as_ref());
    let own = columns
        .into_iter()
        .flatten()
        .find(|column| Some(column.name.as_str()) == of.column);
    Place {
        attribute: own.map(|column| AttributePlace {
            number: column.attnum,
            name: Some(column.name.clone()),
        }),
        ..place
    }
}

fn clear_flag(bytes: &mut [u8]) {
    let flags = Page::parse(bytes).map_or(0, Page::pd_flags);
    if flags & PD_ALL_VISIBLE != 0 {
        put_u16(bytes, FLAGS_AT, flags & !PD_ALL_VISIBLE);
    }
}

fn map_words(bits: u8) -> String {
    let names = [(ALL_VISIBLE, "ALL_VISIBLE"), (ALL_FROZEN, "ALL_FROZEN")];
    let set = names.into_iter().filter(|(bit, _)| bits & bit != 0);
    match set.map(|(_, name)| name).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "none".into(),
        names => names,
    }
}

/// Reads the indexes of every table of which something goes, each once.
fn count_entries(databases: &Databases<'_>, cures: &mut [Cure], gone: &[Option<Taken>]) {
    let mut blocks: BTreeMap<(Oid, Oid), Vec<BlockNo>> = BTreeMap::new();
    for (cure, _) in cures.iter().zip(gone).filter(|(_, gone)| gone.is_some()) {
        if let Some((key, block)) = key_of(cure) {
            blocks.entry(key).or_default().push(block);
        }
    }
    for ((database, table), blocks) in blocks {
        let view = databases.get(database);
        let Some(relation) = view.catalog.relations.get(&table) else {
            continue;
        };
        let indexes = IndexesOfTable::read(&view, relation, &blocks);
        for (cure, gone) in cures.iter_mut().zip(gone) {
            let own = key_of(cure).filter(|(key, _)| *key == (database, table));
            if let (Some((_, block)), Some(taken)) = (own, gone) {
                cure.dangling = indexes.dangling(&view, block, &taken.gone);
                settle_safety(cure, taken);
            }
        }
    }
}

/// Every index was read, and none leads there.
fn settle_safety(cure: &mut Cure, taken: &Taken) {
    if taken.is_exact_without_entries && cure.dangling.is_empty() {
        cure.safety = Safety::Exact;
        cure.evidence
            .push("no entry of an index of the table leads there: it is what VACUUM does".into());
        cure.warnings.clear();
    }
}

fn key_of(cure: &Cure) -> Option<((Oid, Oid), BlockNo)> {
    let place = &cure.place;
    Some(((place.database_oid?, place.relation_oid?), place.block?))
}
