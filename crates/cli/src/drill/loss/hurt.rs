//! The hurt itself, on a copy that its bench brings back afterwards.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_format::build::{put_u16, seal_page};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{BlockNo, LinePointer, LpFlags, Page};

use super::cells::{Hurt, Site};
use crate::exit::Failure;

const PD_LOWER_AT: usize = 12;

/// What the bench does not bring back by itself: a link, and where it led.
pub(super) struct Kept {
    link: Option<(PathBuf, PathBuf)>,
}

impl Kept {
    const NOTHING: Kept = Kept { link: None };

    pub(super) fn bring_back(self) -> Result<(), Failure> {
        match self.link {
            Some((link, target)) => Ok(std::os::unix::fs::symlink(target, link)?),
            None => Ok(()),
        }
    }
}

/// A data directory that is hurt, and one of an older day.
pub(super) struct Bench<'a> {
    pub(super) pgdata: &'a Path,
    pub(super) older: &'a Path,
    pub(super) seed: u64,
}

impl Bench<'_> {
    /// Hurts it. Nothing where there is no older page, or it is the same.
    pub(super) fn hurt(
        &self,
        hurt: Hurt,
        site: &Site,
        page_bytes: usize,
    ) -> Result<Option<Kept>, Failure> {
        let at = |path: &String| self.pgdata.join(path);
        match site {
            Site::Pages { path, blocks } => {
                return self.hurt_pages(hurt, (site, path, blocks), page_bytes);
            }
            Site::Replaced { path, by } => {
                fs::copy(at(by), at(path))?;
            }
            Site::Tail { path, len } => open(&at(path))?.set_len(*len)?,
            Site::Bytes { path, offset, len } => {
                let file = open(&at(path))?;
                let mut now = vec![0; usize::try_from(*len)?];
                file.read_exact_at(&mut now, *offset)?;
                let bytes = match hurt {
                    Hurt::Bit => self.flipped(&now, site),
                    Hurt::Misplaced => elsewhere(&file, *offset, &now)?,
                    _ => self.bytes(hurt, now.len(), site),
                };
                if bytes == now {
                    return Ok(None);
                }
                file.write_all_at(&bytes, *offset)?;
            }
            Site::File { path, .. } if hurt == Hurt::OldCopy => {
                let older = fs::read(self.older.join(path)).unwrap_or_default();
                if older.is_empty() || older == fs::read(at(path))? {
                    return Ok(None);
                }
                fs::write(at(path), older)?;
            }
            Site::File { path, len } => {
                let len = usize::try_from(*len)?;
                fs::write(at(path), self.bytes(hurt, len, site))?;
            }
            Site::Gone { path } => fs::remove_file(at(path))?,
            Site::DirectoryGone { path } => fs::remove_dir_all(at(path))?,
            Site::LinkGone { path } => {
                let link = at(path);
                let target = fs::read_link(&link)?;
                fs::remove_file(&link)?;
                return Ok(Some(Kept {
                    link: Some((link, target)),
                }));
            }
        }
        Ok(Some(Kept::NOTHING))
    }

    fn hurt_pages(
        &self,
        hurt: Hurt,
        (site, path, blocks): (&Site, &str, &[u64]),
        page_bytes: usize,
    ) -> Result<Option<Kept>, Failure> {
        let file = open(&self.pgdata.join(path))?;
        for block in blocks {
            let offset = block * page_bytes as u64;
            let mut now = vec![0; page_bytes];
            file.read_exact_at(&mut now, offset)?;
            let page = match hurt {
                Hurt::Shortened => shortened(&now, BlockNo::try_from(*block)?),
                Hurt::OldCopy => match self.older_page(path, offset, page_bytes) {
                    Some(page) => page,
                    None => return Ok(None),
                },
                _ => self.bytes(hurt, page_bytes, site),
            };
            if now == page {
                return Ok(None);
            }
            file.write_all_at(&page, offset)?;
        }
        Ok(Some(Kept::NOTHING))
    }

    fn older_page(&self, path: &str, offset: u64, page_bytes: usize) -> Option<Vec<u8>> {
        let file = fs::File::open(self.older.join(path)).ok()?;
        let mut page = vec![0; page_bytes];
        file.read_exact_at(&mut page, offset).ok()?;
        Some(page)
    }

    /// One bit of one byte.
    fn flipped(&self, now: &[u8], site: &Site) -> Vec<u8> {
        let bit = self.noise(site).u8(..8);
        now.iter().map(|byte| byte ^ (1 << bit)).collect()
    }

    /// Each place has noise of its own.
    fn noise(&self, site: &Site) -> fastrand::Rng {
        let words = site.words();
        let mixed = words.bytes().fold(self.seed, |mixed, byte| {
            mixed.wrapping_mul(31).wrapping_add(byte.into())
        });
        fastrand::Rng::with_seed(mixed)
    }

    fn bytes(&self, hurt: Hurt, len: usize, site: &Site) -> Vec<u8> {
        let mut noise = self.noise(site);
        match hurt {
            Hurt::Garbage | Hurt::Bytes | Hurt::Sector => (0..len).map(|_| noise.u8(..)).collect(),
            _ => vec![0; len],
        }
    }
}

/// A page without the last third of its line pointers and their rows, as it was before they came.
fn shortened(page: &[u8], block: BlockNo) -> Vec<u8> {
    let mut older = page.to_vec();
    let Some(view) = Page::parse(page) else {
        return older;
    };
    let left = view.line_pointer_count() - view.line_pointer_count() / 3;
    let kept = view.line_pointers().take(usize::from(left));
    let rows = kept.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    let upper = rows.map(|(_, pointer)| pointer.lp_off()).min();
    let upper = upper.unwrap_or(view.pd_special());
    let lower = usize::from(left) * LinePointer::SIZE + HEADER_BYTES;
    if let Some(gone) = older.get_mut(lower..usize::from(upper)) {
        gone.fill(0);
    }
    put_u16(
        &mut older,
        PD_LOWER_AT,
        u16::try_from(lower).unwrap_or(upper),
    );
    put_u16(&mut older, PD_LOWER_AT + 2, upper);
    seal_page(&mut older, block);
    older
}

/// As many bytes of the same file: those before, or after the first.
fn elsewhere(file: &fs::File, offset: u64, now: &[u8]) -> Result<Vec<u8>, Failure> {
    let len = now.len() as u64;
    let from = offset.checked_sub(len).unwrap_or(offset + len);
    let mut page = now.to_vec();
    let read = file.read_at(&mut page, from)?;
    page.truncate(read);
    page.extend_from_slice(now.get(read..).unwrap_or_default());
    Ok(page)
}

fn open(path: &Path) -> Result<fs::File, Failure> {
    Ok(fs::File::options().read(true).write(true).open(path)?)
}
