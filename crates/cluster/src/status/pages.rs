//! Pages of a status log by their numbers, through all its files.

use std::collections::BTreeMap;

use pgclinic_model::document::{FileKind, Place};

use crate::{Cluster, ReadGap, StatusFile};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;

use crate::places::file_place;

/// A status log with one of its files in memory.
pub struct StatusPages<'a> {
    cluster: &'a Cluster,
    log: StatusLog,
    page_bytes: u64,
    files: BTreeMap<u64, StatusFile>,
    kept: Option<(u64, Vec<u8>)>,
}

impl<'a> StatusPages<'a> {
    /// Lists the files.
    pub fn open(cluster: &'a Cluster, log: StatusLog) -> Result<Self, ReadGap> {
        let files = cluster.status_files(log)?.into_iter();
        Ok(StatusPages {
            cluster,
            log,
            page_bytes: u64::from(cluster.build.block_size),
            files: files.map(|file| (file.segment, file)).collect(),
            kept: None,
        })
    }

    /// Another log of the same cluster.
    pub fn beside(&self, log: StatusLog) -> Option<Self> {
        StatusPages::open(self.cluster, log).ok()
    }

    /// The log.
    pub fn log(&self) -> StatusLog {
        self.log
    }

    /// The files in the order of their numbers.
    pub fn files(&self) -> impl Iterator<Item = &StatusFile> {
        self.files.values()
    }

    /// The page that holds a number.
    pub fn page_of(&self, number: u32) -> u64 {
        self.log.page_of(number, self.page_bytes)
    }

    /// The place of a number on its page.
    pub fn entry_of(&self, number: u32) -> usize {
        usize::try_from(self.log.entry_of(number, self.page_bytes)).unwrap_or(usize::MAX)
    }

    /// The first number on a page, if there are so many.
    pub fn first_on(&self, page: u64) -> Option<u32> {
        u32::try_from(page.checked_mul(self.log.entries_per_page(self.page_bytes))?).ok()
    }

    /// Pages until counting begins at 0 again.
    pub fn pages_on_circle(&self) -> u64 {
        self.log.last_page(self.page_bytes) + 1
    }

    /// The page lies in its file as a whole.
    pub fn has(&self, page: u64) -> bool {
        let within = page % PAGES_PER_SEGMENT;
        self.files
            .get(&(page / PAGES_PER_SEGMENT))
            .is_some_and(|file| file.len / self.page_bytes > within)
    }

    /// The file of the page is there, whatever its length.
    pub fn has_file(&self, segment: u64) -> bool {
        self.files.contains_key(&segment)
    }

    /// The bytes of a page; nothing when it is not there or cannot be read.
    pub fn page(&mut self, page: u64) -> Option<&[u8]> {
        self.has(page).then_some(())?;
        let segment = page / PAGES_PER_SEGMENT;
        if self.kept.as_ref().is_none_or(|(kept, _)| *kept != segment) {
            self.kept = Some((segment, self.read(segment).unwrap_or_default()));
        }
        let start = usize::try_from((page % PAGES_PER_SEGMENT) * self.page_bytes).ok()?;
        let len = usize::try_from(self.page_bytes).ok()?;
        let (_, bytes) = self.kept.as_ref()?;
        bytes.get(start..start.checked_add(len)?)
    }

    fn read(&self, segment: u64) -> Option<Vec<u8>> {
        let file = self.files.get(&segment)?;
        let len = file.len.min(PAGES_PER_SEGMENT * self.page_bytes);
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        let source = self.cluster.source();
        let read = source.read_at(&file.path, 0, &mut bytes).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// Where a file is or should be.
    pub fn path_of(&self, segment: u64) -> String {
        match self.files.get(&segment) {
            Some(file) => file.path.clone(),
            None => self.log.path(segment, self.cluster.layout.major),
        }
    }

    /// The place of a page.
    pub fn place(&self, page: u64) -> Place {
        Place {
            block: u32::try_from(page).ok(),
            ..file_place(self.path_of(page / PAGES_PER_SEGMENT), FileKind::Slru)
        }
    }

    /// What the server says when it cannot read the page for this number.
    pub fn refusal(&self, number: u32, page: u64) -> String {
        let segment = page / PAGES_PER_SEGMENT;
        let path = self.path_of(segment);
        let offset = (page % PAGES_PER_SEGMENT) * self.page_bytes;
        let detail = if self.has_file(segment) {
            format!("Could not read from file \"{path}\" at offset {offset}: read too few bytes.")
        } else {
            format!("Could not open file \"{path}\": No such file or directory.")
        };
        format!("FATAL:  could not access status of transaction {number}\nDETAIL:  {detail}")
    }
}
