//! The members of one archive with their places in it.

use pgclinic_format::tar::{BLOCK, Description, Header, HeaderFault, MemberKind, text};

use crate::tar::archive_cursor::{ArchiveCursor, Step, Stop};
use crate::tar::described::{
    Content, ISLANDS_TOGETHER, described_by, described_bytes, describes_the_next, meant, stored,
};
use crate::tar::packing::{BEHIND_END_MAX, endless, not_to_its_end};

/// Members of one archive that are read.
pub(super) const MEMBERS_MAX: usize = 10_000_000;

/// A regular file, or another name, of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: MemberKind,
    /// Where its content begins.
    pub(crate) offset: u64,
    /// Bytes of its content that are there, as they are stored.
    pub(crate) len: u64,
    /// How they are stored.
    pub(crate) content: Content,
    /// What it leads to, where it is a link.
    pub(crate) link: Vec<u8>,
}

/// What was read of an archive.
#[derive(Default, Debug)]
pub(crate) struct Members {
    pub(crate) members: Vec<Member>,
    /// Why the rest of the archive is not there.
    pub(crate) broken: Option<String>,
}

/// Reads to the end of the archive or as far as it makes sense. What ends the work is an error,
/// what is wrong with the archive is not.
pub(crate) fn read(tape: &mut ArchiveCursor<'_>, step: Step<'_>) -> Result<Members, Stop> {
    let mut found = Members::default();
    match walk(tape, &mut found, step) {
        Ok(None) => found.broken = behind_the_end(tape, step)?,
        Ok(broken) => found.broken = broken,
        Err(Stop::Broken(error)) => {
            let at = tape.end();
            found.broken = Some(format!("after {at} bytes it cannot be read on: {error}"));
        }
        Err(stop) => return Err(stop),
    }
    let end = tape.end();
    if let Some(last) = found.members.last_mut() {
        last.len = last.len.min(end.saturating_sub(last.offset));
    }
    Ok(found)
}

/// What is packed has its checksums behind the archive's end mark.
fn behind_the_end(tape: &mut ArchiveCursor<'_>, step: Step<'_>) -> Result<Option<String>, Stop> {
    match tape.drain(BEHIND_END_MAX, step) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(endless())),
        Err(Stop::Broken(error)) => Ok(Some(not_to_its_end(error))),
        Err(stop) => Err(stop),
    }
}

/// Gives the reason why the archive ends too early.
fn walk(
    tape: &mut ArchiveCursor<'_>,
    found: &mut Members,
    step: Step<'_>,
) -> Result<Option<String>, Stop> {
    let mut coming = Description::default();
    let mut islands_left = ISLANDS_TOGETHER;
    loop {
        let mut block = [0; BLOCK];
        let read = tape.read(&mut block, step)?;
        let at = tape.position();
        if read < BLOCK {
            let what = if read == 0 {
                "the end mark is missing"
            } else {
                "it ends in a header"
            };
            return Ok(Some(format!(
                "{what} after {at} bytes: the archive was truncated"
            )));
        }
        let header = match Header::parse(&block) {
            Ok(header) => header,
            Err(HeaderFault::End) => return Ok(None),
            Err(HeaderFault::Checksum) => {
                return Ok(Some(format!(
                    "at byte {} stands no header",
                    at - BLOCK as u64
                )));
            }
            Err(HeaderFault::Size) => {
                let name = String::from_utf8_lossy(&header_name(&block)).into_owned();
                return Ok(Some(format!("the size of {name:?} is not a number")));
            }
        };
        if describes_the_next(header.kind) {
            let content = small_content(tape, &header, step)?;
            coming = described_by(&header, &content).or(coming);
            continue;
        }
        if header.kind == MemberKind::DescribedAll {
            if let Some(cut) = pass(tape, &header, at, step)? {
                return Ok(Some(cut));
            }
            continue;
        }
        let (header, sparse) = meant(header, std::mem::take(&mut coming));
        let mut next = |room: &mut [u8; BLOCK]| -> Result<bool, Stop> {
            Ok(tape.read(room, &mut *step)? == BLOCK)
        };
        let stored = stored(&header, &block, sparse, &mut islands_left, &mut next)?;
        // Blocks of a map behind the header are no part of the content, a map in the content is.
        let offset = tape.position();
        let begin = offset.saturating_sub(stored.map_bytes);
        found.members.push(Member {
            name: header.name.clone(),
            kind: header.kind,
            offset,
            len: header.size.saturating_sub(stored.map_bytes),
            content: stored.content,
            link: header.link.clone(),
        });
        if found.members.len() >= MEMBERS_MAX {
            return Ok(Some(format!("it has more than {MEMBERS_MAX} members")));
        }
        if let Some(cut) = pass(tape, &header, begin, step)? {
            return Ok(Some(cut));
        }
    }
}

fn header_name(block: &[u8; BLOCK]) -> Vec<u8> {
    text(block.get(..100).unwrap_or_default()).to_vec()
}

/// Goes behind the content; the reason why it is not all there.
fn pass(
    tape: &mut ArchiveCursor<'_>,
    header: &Header,
    at: u64,
    step: Step<'_>,
) -> Result<Option<String>, Stop> {
    let behind = header.padded_size().and_then(|size| at.checked_add(size));
    let name = String::from_utf8_lossy(&header.name);
    let Some(behind) = behind else {
        return Ok(Some(format!("{name:?} claims {} bytes", header.size)));
    };
    if tape.skip_to(behind, step)? {
        return Ok(None);
    }
    let there = tape.end().saturating_sub(at).min(header.size);
    Ok(Some(format!(
        "of the {} bytes of {name:?} only {there} are there: the archive was truncated",
        header.size
    )))
}

/// The content of a member that describes another one; a long one is cut.
fn small_content(
    tape: &mut ArchiveCursor<'_>,
    header: &Header,
    step: Step<'_>,
) -> Result<Vec<u8>, Stop> {
    let at = tape.position();
    let len = described_bytes(header);
    let mut content = vec![0; len];
    let read = tape.read(&mut content, step)?;
    content.truncate(read);
    if let Some(behind) = header.padded_size().and_then(|size| at.checked_add(size)) {
        tape.skip_to(behind, step)?;
    }
    Ok(content)
}
