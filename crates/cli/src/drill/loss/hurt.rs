//! The hurt itself, on a copy that its bench brings back afterwards.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::cells::{Hurt, Site};
use crate::exit::Failure;

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
            Site::Pages { path, blocks } => return self.hurt_pages(hurt, path, blocks, page_bytes),
            Site::Tail { path, len } => open(&at(path))?.set_len(*len)?,
            Site::Bytes { path, offset, len } => {
                let bytes = self.bytes(hurt, usize::try_from(*len)?);
                open(&at(path))?.write_all_at(&bytes, *offset)?;
            }
            Site::File { path, len } => {
                let len = usize::try_from(*len)?;
                fs::write(at(path), self.bytes(hurt, len))?;
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
        path: &str,
        blocks: &[u64],
        page_bytes: usize,
    ) -> Result<Option<Kept>, Failure> {
        let file = open(&self.pgdata.join(path))?;
        for block in blocks {
            let offset = block * page_bytes as u64;
            let page = match hurt {
                Hurt::OldCopy => match self.older_page(path, offset, page_bytes) {
                    Some(page) => page,
                    None => return Ok(None),
                },
                _ => self.bytes(hurt, page_bytes),
            };
            let mut now = vec![0; page_bytes];
            file.read_exact_at(&mut now, offset)?;
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

    fn bytes(&self, hurt: Hurt, len: usize) -> Vec<u8> {
        let mut noise = fastrand::Rng::with_seed(self.seed);
        match hurt {
            Hurt::Garbage | Hurt::Bytes | Hurt::Sector => (0..len).map(|_| noise.u8(..)).collect(),
            _ => vec![0; len],
        }
    }
}

fn open(path: &Path) -> Result<fs::File, Failure> {
    Ok(fs::File::options().read(true).write(true).open(path)?)
}
