//! What the members in front of a member say of it, and what its map of holes says of its content.

use pgclinic_format::tar::{
    BLOCK, Description, Header, MapInContent, MemberKind, OldMap, PaxSparse, SparseMap, text,
};

/// Bytes of a name that are read, and of a description, in which a map of holes may stand.
const NAME_BYTES: u64 = 64 << 10;
const DESCRIPTION_BYTES: u64 = 4 << 20;

/// Islands of all files of one archive that are kept in memory.
pub(super) const ISLANDS_TOGETHER: usize = 1 << 22;

/// How the content of a member is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// As it is.
    Whole,
    /// Without its holes.
    Holed(SparseMap),
    /// In a way that cannot be followed, for this reason.
    Lost(&'static str),
}

/// The content of a member, and how many bytes in front of it are its map.
pub(super) struct Stored {
    pub(super) content: Content,
    pub(super) map_bytes: u64,
}

/// The member says something of the one behind it.
pub(super) fn describes_the_next(kind: MemberKind) -> bool {
    let names = [
        MemberKind::LongName,
        MemberKind::LongLink,
        MemberKind::Described,
    ];
    names.contains(&kind)
}

/// Bytes that are read of a member that describes another; what is longer is cut.
pub(super) fn described_bytes(header: &Header) -> usize {
    let limit = match header.kind {
        MemberKind::Described => DESCRIPTION_BYTES,
        _ => NAME_BYTES,
    };
    usize::try_from(header.size.min(limit)).unwrap_or(0)
}

/// What it says.
pub(super) fn described_by(header: &Header, content: &[u8]) -> Description {
    let name = || Some(text(content).to_vec());
    match header.kind {
        MemberKind::LongName => Description {
            path: name(),
            ..Description::default()
        },
        MemberKind::LongLink => Description {
            link: name(),
            ..Description::default()
        },
        _ => Description::parse(content),
    }
}

/// The header with what was said of it, and what was said of its holes.
pub(super) fn meant(header: Header, described: Description) -> (Header, Option<PaxSparse>) {
    let is_file = matches!(header.kind, MemberKind::File | MemberKind::Sparse);
    let size = described.size.filter(|_| is_file);
    let meant = Header {
        name: described.path.unwrap_or(header.name),
        size: size.unwrap_or(header.size),
        kind: header.kind,
        link: described.link.unwrap_or(header.link),
    };
    (meant, described.sparse)
}

const NO_MAP: &str = "the map of its holes cannot be read";
const TOO_MANY: &str = "the maps of holes are too long together";

/// Reads the map of a file with holes; `next` gives the next block of the archive and says whether
/// there is one. `islands_left` is what all maps together may still have.
pub(super) fn stored<E>(
    header: &Header,
    block: &[u8; BLOCK],
    sparse: Option<PaxSparse>,
    islands_left: &mut usize,
    next: &mut dyn FnMut(&mut [u8; BLOCK]) -> Result<bool, E>,
) -> Result<Stored, E> {
    let (map, map_bytes) = match (header.kind, sparse) {
        (MemberKind::Sparse, _) => (old_map(block, next)?, 0),
        (MemberKind::File, Some(sparse)) if sparse.is_in_content() => {
            map_in_content(header.size, &sparse, next)?
        }
        (MemberKind::File, Some(sparse)) => (sparse.finish(), 0),
        _ => {
            return Ok(Stored {
                content: Content::Whole,
                map_bytes: 0,
            });
        }
    };
    let room = header.size.saturating_sub(map_bytes);
    let content = match map.filter(|map| map.stored_bytes() <= room) {
        Some(map) if map.islands() <= *islands_left => {
            *islands_left -= map.islands();
            Content::Holed(map)
        }
        Some(_) => Content::Lost(TOO_MANY),
        None => Content::Lost(NO_MAP),
    };
    Ok(Stored { content, map_bytes })
}

fn old_map<E>(
    block: &[u8; BLOCK],
    next: &mut dyn FnMut(&mut [u8; BLOCK]) -> Result<bool, E>,
) -> Result<Option<SparseMap>, E> {
    let mut map = OldMap::begin(block);
    while map.goes_on() {
        let mut block = [0; BLOCK];
        if !next(&mut block)? {
            return Ok(None);
        }
        map.go_on(&block);
    }
    Ok(map.finish())
}

/// The map, and the bytes of the content that were read for it.
fn map_in_content<E>(
    size: u64,
    sparse: &PaxSparse,
    next: &mut dyn FnMut(&mut [u8; BLOCK]) -> Result<bool, E>,
) -> Result<(Option<SparseMap>, u64), E> {
    let (mut map, mut taken) = (MapInContent::default(), 0u64);
    loop {
        let behind = taken.saturating_add(BLOCK as u64);
        let mut block = [0; BLOCK];
        if behind > size || !next(&mut block)? {
            return Ok((None, taken));
        }
        taken = behind;
        match map.take(&block) {
            Some(true) => {
                let real_size = sparse.real_size();
                return Ok((real_size.and_then(|size| map.finish(size)), taken));
            }
            Some(false) => {}
            None => return Ok((None, taken)),
        }
    }
}
