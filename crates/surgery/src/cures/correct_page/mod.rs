//! A page is corrected by what stands on it: one flipped bit, header fields that follow from the
//! rest, line pointers that follow from the tuples.
//!
//! ```text
//! bits, header, line pointers ─► candidates ─► checksum and every check of the page ─► exactly one is left
//! ```
//!
//! A checksum has 16 bits, so that about one bit of any 8 kB page makes it true by chance. A page
//! is *exact* only where two witnesses that know nothing of each other agree: the structure, which
//! was damaged and is sound afterwards, and the checksum, which nobody touched. Where the checksum
//! alone speaks the page is *lossy*: had more than one bit changed, a value would be wrong.

mod header;
mod line_pointers;
mod single_bits;
mod trial;

use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles, Relation, read_block};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::CureRequest;
use pgclinic_model::plan::Safety;

use self::trial::{PageDamage, PageTrial};
use super::databases::Databases;
use super::draft::Draft;
use super::heap_place::{HeapPlace, named_files};
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

/// Name of the cure.
pub const CORRECT_PAGE: &str = "correct-page";

pub(super) const CURE: Cure = Cure {
    name: CORRECT_PAGE,
    summary: "correct a page by its own structure and checksum",
    unit: CureUnit::Page,
    files: CuredFiles::Tables,
    draft: correct_page,
};

/// A page as it may have been.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Candidate {
    page: Vec<u8>,
    /// What is corrected, as part of a sentence.
    what: String,
    source: CandidateSource,
}

/// What a candidate follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CandidateSource {
    /// One bit is another.
    SingleBit,
    /// Fields of the header that have the same value on every page of a table.
    Constants,
    /// Fields of the header that follow from the line pointers.
    Header,
    /// Line pointers that follow from the tuples.
    LinePointers,
}

/// The one page that is left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageCorrection {
    /// Its bytes, with their true checksum.
    pub bytes: Vec<u8>,
    /// How sure it is.
    pub safety: Safety,
    /// What is corrected, as part of a sentence.
    pub what: String,
    /// Why, a sentence each.
    pub evidence: Vec<String>,
}

/// Corrects a page of a table by what stands on it; nothing is read but the page.
///
/// # Errors
/// When no candidate is sound or several are: then with the reason.
pub fn page_correction(
    database: &DatabaseContext<'_>,
    files: &ForkFiles,
    block: BlockNo,
    bytes: &[u8],
) -> std::result::Result<PageCorrection, String> {
    let trial = PageTrial::new(database, files, block);
    let page = Page::parse(bytes).ok_or("it is not a page")?;
    let before = trial.damage(bytes);
    if before.is_empty() {
        return Err("the checks find nothing wrong with the page".into());
    }
    if before.is_misplaced {
        return Err("the page is another block's: it was written to the wrong place".into());
    }
    if page.is_zeroed() {
        return Err("the page is all zero: nothing follows from it".into());
    }
    if trial.has_checksums() && trial.checksum_is_right(bytes) {
        return Err("its checksum is right: the server wrote the page like this, and what was wrong before has no witness".into());
    }
    let mut sound = sound_candidates(&trial, page, &before.items);
    let (Some(only), true) = (sound.pop(), sound.is_empty()) else {
        return Err(none_or_several(sound.len()));
    };
    Ok(correction(only, &before, &trial))
}

/// Every candidate with which nothing is wrong, each page once.
fn sound_candidates(trial: &PageTrial<'_>, page: Page<'_>, damaged: &[u16]) -> Vec<Candidate> {
    let mut sound: Vec<Candidate> = Vec::new();
    // Whoever finds a page first gives it its words: those of fields say more than those of bits.
    let candidates = header::candidates(trial, page)
        .into_iter()
        .chain(line_pointers::candidates(trial, page, damaged))
        .chain(single_bits::candidates(trial, page, damaged));
    for candidate in candidates {
        let is_known = sound.iter().any(|known| known.page == candidate.page);
        if !is_known && trial.is_sound(&candidate.page) {
            sound.push(candidate);
        }
        if sound.len() > SOUND_MAX {
            break;
        }
    }
    sound
}

/// More than one already proves nothing; how many there are is counted up to here.
const SOUND_MAX: usize = 8;

fn none_or_several(others: usize) -> String {
    match others {
        0 => "no single bit, no header field that follows from the rest and no line pointer that follows from the tuples makes the page sound".into(),
        others => format!(
            "{} or more different pages would be sound: what stands on the page does not show which one it was",
            others + 1
        ),
    }
}

/// How sure it is, and why.
fn correction(only: Candidate, before: &PageDamage, trial: &PageTrial<'_>) -> PageCorrection {
    let (safety, why) = if !trial.has_checksums() {
        without_checksum(only.source)
    } else if before.is_structural {
        (
            Safety::Exact,
            "the structure was damaged and is sound with it, and the stored checksum is right then: of all candidates it is the only one",
        )
    } else {
        (
            Safety::Lossy,
            "it is the only bit with which the stored checksum is right and every check passes; that no more than one bit changed is not proven, since the structure of the page was sound before",
        )
    };
    PageCorrection {
        bytes: only.page,
        safety,
        what: only.what,
        evidence: vec![why.into()],
    }
}

fn without_checksum(source: CandidateSource) -> (Safety, &'static str) {
    match source {
        CandidateSource::Constants => (
            Safety::Lossy,
            "these fields have the same value on every page of a table, and with it every check passes; without data checksums nothing shows that the page is the table's at all",
        ),
        CandidateSource::SingleBit | CandidateSource::Header | CandidateSource::LinePointers => (
            Safety::Lossy,
            "it is the only candidate with which every check passes; without data checksums nothing confirms the other bytes of the page",
        ),
    }
}

/// What the pages of tables that these requests name say of themselves.
///
/// # Errors
/// When a request names no page of a relation.
pub fn page_corrections(
    cluster: &Cluster,
    requests: &[CureRequest],
) -> Result<Vec<std::result::Result<PageCorrection, String>>> {
    let mut databases = Databases::new(cluster);
    let mut corrections = Vec::new();
    for request in requests {
        let named = named_files(request, CuredFiles::Tables, &mut databases, cluster)?;
        let database = databases.get(named.database);
        corrections.push(correction_of(&database, &named.files, request.block));
    }
    Ok(corrections)
}

fn correction_of(
    database: &DatabaseContext<'_>,
    files: &ForkFiles,
    block: BlockNo,
) -> std::result::Result<PageCorrection, String> {
    let cluster = database.cluster;
    let relation = database
        .catalog
        .by_file(files.home.tablespace, files.filenode);
    if relation.and_then(Relation::page_method) != Some(AccessMethod::Heap) {
        return Err("it is not a page of a table: nothing on it shows what it was".into());
    }
    let bytes = read_block(cluster.source().as_ref(), files, cluster.build, block);
    let bytes = bytes.ok_or("the page cannot be read")?;
    page_correction(database, files, block, &bytes)
}

fn correct_page(place: &HeapPlace<'_>) -> Result<Draft> {
    let corrected = page_correction(place.database, place.files, place.block, place.bytes);
    let corrected = match corrected {
        Ok(corrected) => corrected,
        Err(why) => return place.refuse(why),
    };
    let summary = format!("{}; the rest of the page stays", corrected.what);
    let mut draft = Draft::new(corrected.bytes, summary, corrected.safety);
    draft.evidence = corrected.evidence;
    draft.is_confirmed_by_checksum = place.cluster.checksums() == Some(true);
    if draft.safety == Safety::Lossy {
        draft = draft.warn("if more than this was changed, values on the page are wrong: compare its rows with another copy where there is one");
    }
    Ok(draft)
}
