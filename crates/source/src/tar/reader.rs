//! The members of one archive with their places in it.

use pgclinic_format::tar::{BLOCK, Description, Header, HeaderFault, MemberKind, text};

use crate::tar::tape::{Step, Stop, Tape};

/// Bytes of a name or a description that are read.
const NAME_BYTES: u64 = 64 << 10;

/// Members of one archive that are read.
pub(super) const MEMBERS_MAX: usize = 10_000_000;

/// A regular file, or another name, of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: MemberKind,
    /// Where its content begins.
    pub(crate) offset: u64,
    /// Bytes of its content that are there.
    pub(crate) len: u64,
}

/// What was read of an archive.
#[derive(Default, Debug)]
pub(crate) struct Members {
    pub(crate) members: Vec<Member>,
    /// Why the rest of the archive is not there.
    pub(crate) broken: Option<String>,
}

/// Reads to the end of the archive or as far as it makes sense. What ends the work is an error, what is wrong with the
/// archive is not.
pub(crate) fn read(tape: &mut Tape, step: Step<'_>) -> Result<Members, Stop> {
    let mut found = Members::default();
    match walk(tape, &mut found, step) {
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

/// Gives the reason why the archive ends too early.
fn walk(tape: &mut Tape, found: &mut Members, step: Step<'_>) -> Result<Option<String>, Stop> {
    let mut coming = Description::default();
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
                "{what} after {at} bytes: the archive was cut"
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
                return Ok(Some(format!("the size of {name:?} is no number")));
            }
        };
        match header.kind {
            MemberKind::LongName | MemberKind::Described => {
                let content = small_content(tape, &header, step)?;
                if header.kind == MemberKind::LongName {
                    coming.path = Some(text(&content).to_vec());
                } else {
                    let described = Description::parse(&content);
                    coming.path = described.path.or(coming.path);
                    coming.size = described.size.or(coming.size);
                }
            }
            MemberKind::LongLink | MemberKind::DescribedAll => {
                if let Some(cut) = pass(tape, &header, at, step)? {
                    return Ok(Some(cut));
                }
            }
            _ => {
                let described = std::mem::take(&mut coming);
                let header = Header {
                    name: described.path.unwrap_or(header.name),
                    size: match header.kind {
                        MemberKind::File => described.size.unwrap_or(header.size),
                        _ => header.size,
                    },
                    kind: header.kind,
                };
                found.members.push(Member {
                    name: header.name.clone(),
                    kind: header.kind,
                    offset: at,
                    len: header.size,
                });
                if found.members.len() >= MEMBERS_MAX {
                    return Ok(Some(format!("it has more than {MEMBERS_MAX} members")));
                }
                if let Some(cut) = pass(tape, &header, at, step)? {
                    return Ok(Some(cut));
                }
            }
        }
    }
}

fn header_name(block: &[u8; BLOCK]) -> Vec<u8> {
    text(block.get(..100).unwrap_or_default()).to_vec()
}

/// Goes behind the content; the reason why it is not all there.
fn pass(tape: &mut Tape, header: &Header, at: u64, step: Step<'_>) -> Result<Option<String>, Stop> {
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
        "of the {} bytes of {name:?} only {there} are there: the archive was cut",
        header.size
    )))
}

/// The content of a member that describes another one; a long one is cut.
fn small_content(tape: &mut Tape, header: &Header, step: Step<'_>) -> Result<Vec<u8>, Stop> {
    let at = tape.position();
    let len = usize::try_from(header.size.min(NAME_BYTES)).unwrap_or(0);
    let mut content = vec![0; len];
    let read = tape.read(&mut content, step)?;
    content.truncate(read);
    if let Some(behind) = header.padded_size().and_then(|size| at.checked_add(size)) {
        tape.skip_to(behind, step)?;
    }
    Ok(content)
}
