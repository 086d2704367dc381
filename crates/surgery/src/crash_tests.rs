//! The plug is pulled between any two steps, and once more while undoing: the first bytes come
//! back.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use pgclinic_format::control_file::{FILE_BYTES, seal};
use pgclinic_model::document::Tool;
use pgclinic_model::plan::{Change, Patch};

use crate::journal::{Journal, JournalFolder, SCHEMA, State};
use crate::operate::FileBeside;
use crate::resume::complete;
use crate::storage::{Owner, Storage};
use crate::undo::take_back;
use crate::writer::carry_out;

/// Files in memory that know what would survive a power cut.
#[derive(Clone, Default)]
struct Simulated {
    files: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    lasting_names: BTreeMap<PathBuf, usize>,
    /// Permission bits that were set.
    modes: BTreeMap<PathBuf, u32>,
    /// Names that still belong to whoever is at work.
    ours: BTreeSet<PathBuf>,
    /// Steps until the power fails.
    steps_left: Option<u64>,
}

#[derive(Clone, Default)]
struct Inode {
    now: Vec<u8>,
    lasting: Vec<u8>,
}

/// What the disk had got to when the power failed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Cut {
    /// Only what was synced.
    Synced,
    /// Everything.
    All,
    /// Every other sector of what was not synced, and no names.
    Torn,
    /// Names, but no bytes that were not synced.
    NamesOnly,
}

const CUTS: [Cut; 4] = [Cut::Synced, Cut::All, Cut::Torn, Cut::NamesOnly];

impl Simulated {
    fn step(&mut self) -> io::Result<()> {
        match self.steps_left.as_mut() {
            Some(0) => Err(io::Error::other("the power failed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        self.names
            .get(path)
            .copied()
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn after(&self, cut: Cut) -> Simulated {
        let names = match cut {
            Cut::All | Cut::NamesOnly => &self.names,
            Cut::Synced | Cut::Torn => &self.lasting_names,
        };
        let settle = |inode: &Inode| {
            let bytes = match cut {
                Cut::All => inode.now.clone(),
                Cut::Synced | Cut::NamesOnly => inode.lasting.clone(),
                Cut::Torn => torn(inode),
            };
            Inode {
                now: bytes.clone(),
                lasting: bytes,
            }
        };
        Simulated {
            files: self.files.iter().map(settle).collect(),
            names: names.clone(),
            lasting_names: names.clone(),
            modes: self.modes.clone(),
            ours: self.ours.clone(),
            steps_left: None,
        }
    }

    fn add(&mut self, path: &str, bytes: &[u8]) {
        let inode = Inode {
            now: bytes.to_vec(),
            lasting: bytes.to_vec(),
        };
        self.files.push(inode);
        self.names.insert(path.into(), self.files.len() - 1);
        self.lasting_names.insert(path.into(), self.files.len() - 1);
    }

    /// The cluster's files without the journal, each with whether it is still ours.
    fn cluster(&self) -> BTreeMap<PathBuf, (Vec<u8>, bool)> {
        let own = self
            .names
            .iter()
            .filter(|(path, _)| path.starts_with(PGDATA));
        own.map(|(path, inode)| {
            let bytes = self.files[*inode].now.clone();
            (path.clone(), (bytes, self.ours.contains(path)))
        })
        .collect()
    }
}

/// Sectors in turn from now and from before; a file that grew has its length and zeros.
fn torn(inode: &Inode) -> Vec<u8> {
    let mut bytes = inode.now.clone();
    let mut before = inode.lasting.clone();
    before.resize(bytes.len(), 0);
    for (number, sector) in bytes
        .chunks_mut(512)
        .enumerate()
        .filter(|(number, _)| number % 2 == 0)
    {
        let start = number * 512;
        sector.copy_from_slice(&before[start..start + sector.len()]);
    }
    bytes
}

impl Storage for Simulated {
    fn len(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self
            .names
            .get(path)
            .map(|inode| self.files[*inode].now.len() as u64))
    }

    fn read_at(&self, path: &Path, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = &self.files[self.inode(path)?].now;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn owner(&self, path: &Path) -> io::Result<Owner> {
        let uid = if self.ours.contains(path) { 0 } else { 26 };
        Ok(Owner {
            uid,
            gid: uid,
            mode: self.modes.get(path).copied().unwrap_or(0o600),
        })
    }

    fn may_write(&self, path: &Path) -> io::Result<()> {
        self.inode(path).map(drop)
    }

    fn create_folder(&mut self, _path: &Path) -> io::Result<()> {
        self.step()
    }

    fn create(&mut self, path: &Path, _owner: Option<Owner>) -> io::Result<()> {
        self.step()?;
        match self.names.get(path) {
            Some(inode) => self.files[*inode].now.clear(),
            None => {
                self.files.push(Inode::default());
                self.names.insert(path.into(), self.files.len() - 1);
            }
        }
        Ok(())
    }

    fn write_at(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let inode = self.inode(path)?;
        let end = offset as usize + bytes.len();
        let now = &mut self.files[inode].now;
        now.resize(now.len().max(end), 0);
        now[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, path: &Path, len: u64) -> io::Result<()> {
        self.step()?;
        let inode = self.inode(path)?;
        self.files[inode].now.truncate(len as usize);
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.inode(path)?;
        self.names.remove(path);
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        let inode = self.inode(from)?;
        self.names.remove(from);
        self.names.insert(to.into(), inode);
        if self.ours.remove(from) {
            self.ours.insert(to.into());
        } else {
            self.ours.remove(to);
        }
        Ok(())
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        let inode = self.inode(path)?;
        self.files[inode].lasting = self.files[inode].now.clone();
        Ok(())
    }

    fn sync_folder(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        let here = |name: &PathBuf| name.parent() == Some(path);
        self.lasting_names.retain(|name, _| !here(name));
        let own = self.names.iter().filter(|(name, _)| here(name));
        self.lasting_names
            .extend(own.map(|(name, inode)| (name.clone(), *inode)));
        Ok(())
    }

    fn is_there(&self, path: &Path) -> io::Result<bool> {
        Ok(self.names.contains_key(path))
    }

    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let link = self.names.get(path).map(|inode| &self.files[*inode].now);
        let target = link.and_then(|bytes| bytes.strip_prefix(LINK));
        Ok(target.map(|target| String::from_utf8_lossy(target).into_owned().into()))
    }

    fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        self.made(path, DIRECTORY.to_vec())
    }

    fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }

    fn set_mode(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        self.step()?;
        self.modes.insert(path.into(), mode);
        Ok(())
    }

    fn link(&mut self, target: &Path, path: &Path) -> io::Result<()> {
        let link = [LINK, target.to_string_lossy().as_bytes()].concat();
        self.made(path, link)
    }

    fn give(&mut self, path: &Path, _owner: Owner) -> io::Result<()> {
        self.step()?;
        self.ours.remove(path);
        Ok(())
    }

    fn names(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let here = self.names.keys().filter(|name| name.parent() == Some(path));
        Ok(here
            .filter_map(|name| name.file_name())
            .map(Into::into)
            .collect())
    }
}

/// What stands for a directory, and before the target of a link.
const DIRECTORY: &[u8] = b"a directory";
const LINK: &[u8] = b"a link to ";

impl Simulated {
    /// A name whose content lasts as soon as the name does.
    fn made(&mut self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        self.step()?;
        self.files.push(Inode {
            now: bytes.clone(),
            lasting: bytes,
        });
        self.names.insert(path.into(), self.files.len() - 1);
        self.ours.insert(path.into());
        Ok(())
    }
}

const PGDATA: &str = "/data";
const NUMBER: u64 = 7_123_456_789_012_345_678;

fn control_file(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..12].copy_from_slice(&1800u32.to_le_bytes());
    bytes[208..216].copy_from_slice(&1_234_567.0f64.to_le_bytes());
    assert!(seal(&mut bytes), "a control file of 18");
    bytes
}

fn pattern(len: usize, start: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ start).collect()
}

fn cluster() -> Simulated {
    let mut files = Simulated::default();
    files.add("/data/global/pg_control", &control_file(NUMBER));
    files.add("/data/base/5/1", &pattern(4096, 1));
    files.add("/data/base/5/2", &pattern(3000, 2));
    files.add("/data/base/5/3", &pattern(2000, 3));
    files.add("/data/base/5/4", &pattern(700, 6));
    files.add("/data/base/5/6", &pattern(900, 7));
    files.add("/data/pg_replslot/one", DIRECTORY);
    files
}

/// Every kind of change, the control file's own number among them.
fn patch() -> Patch {
    let bytes = |path: &str, offset: u64, before: Vec<u8>| Change::Bytes {
        path: path.into(),
        offset,
        after: before.iter().map(|byte| !byte).collect(),
        before,
    };
    Patch {
        changes: vec![
            bytes("base/5/1", 100, pattern(4096, 1)[100..2500].to_vec()),
            Change::Cut {
                path: "base/5/2".into(),
                len: 700,
                kept: "tail".into(),
            },
            bytes("global/pg_control", 0, NUMBER.to_le_bytes().to_vec()),
            Change::Remove {
                path: "base/5/3".into(),
                kept: "whole".into(),
            },
            Change::Extend {
                path: "base/5/1".into(),
                before: Some(4096),
                after: pattern(1500, 4),
            },
            Change::Extend {
                path: "base/5/5".into(),
                before: None,
                after: pattern(1100, 5),
            },
            append("base/5/6", Some(900), "longer", &pattern(1300, 8)),
            append("base/5/7", None, "made", &pattern(1100, 9)),
            Change::Directory {
                path: "pg_wal".into(),
            },
            Change::RemoveDirectory {
                path: "pg_replslot/one".into(),
            },
            Change::Write {
                path: "pg_wal/0".into(),
                bytes: pattern(1500, 4),
                len: 4000,
                kept: None,
            },
            Change::Write {
                path: "base/5/4".into(),
                bytes: pattern(900, 5),
                len: 900,
                kept: Some("replaced".into()),
            },
            Change::Mode {
                path: ".".into(),
                before: 0o600,
                after: 0o700,
            },
            Change::Link {
                path: "pg_tblspc/9".into(),
                target: "/space".into(),
            },
        ],
    }
}

fn append(path: &str, before: Option<u64>, from: &str, bytes: &[u8]) -> Change {
    Change::Append {
        path: path.into(),
        before,
        len: bytes.len() as u64,
        from: from.into(),
        blake3: blake3::hash(bytes).to_hex().to_string(),
    }
}

fn journal() -> Journal {
    Journal {
        schema: SCHEMA.into(),
        tool: Tool::this(),
        system_identifier: Some(NUMBER.to_string()),
        pgdata: PGDATA.into(),
        time: None,
        what: "test".into(),
        state: State::Planned,
        patch: patch(),
        kept: Vec::new(),
    }
}

fn folder() -> JournalFolder {
    JournalFolder::new(Path::new("/journals/one"))
}

/// Before the journal was lasting nothing may have been written; after that it takes everything
/// back.
fn undone(files: &mut Simulated) {
    if files.len(&folder().file()).expect("no fault").is_some() {
        take_back(files, &folder(), Path::new(PGDATA)).expect("an undo");
    }
}

/// The rows that go, saved first.
const ROWS: &[u8] = b"id,body\n7,row 7\n";

/// Rows, and what the patch appends.
fn beside() -> Vec<FileBeside> {
    vec![
        FileBeside::of_bytes("rows.csv", ROWS.to_vec()),
        FileBeside::of_bytes("longer", pattern(1300, 8)),
        FileBeside::of_bytes("made", pattern(1100, 9)),
    ]
}

/// The journal lasts, so that something may have been written.
fn is_journalled(files: &Simulated) -> bool {
    files.len(&folder().file()).expect("no fault").is_some()
}

/// All that the patch asks for.
fn applied() -> Simulated {
    let mut files = cluster();
    carry_out(&mut files, &folder(), &journal(), &beside()).expect("no fault");
    files.after(Cut::Synced)
}

#[test]
fn rows_are_saved_before_a_byte_changes() {
    let first = cluster();
    for steps in 0.. {
        let mut files = first.clone();
        files.steps_left = Some(steps);
        let finished = carry_out(&mut files, &folder(), &journal(), &beside()).is_ok();
        for fault in CUTS {
            let after = files.after(fault);
            if after.cluster() == first.cluster() && !is_journalled(&after) {
                continue;
            }
            let saved = after.inode(&folder().kept("rows.csv")).expect("it lasts");
            assert_eq!(after.files[saved].now, ROWS, "step {steps}, {fault:?}");
        }
        if finished {
            return;
        }
    }
}

#[test]
fn from_every_cut_a_journal_is_completed_or_nothing_was_written() {
    let (first, whole) = (cluster(), applied().cluster());
    for steps in 0.. {
        let mut files = first.clone();
        files.steps_left = Some(steps);
        let finished = carry_out(&mut files, &folder(), &journal(), &beside()).is_ok();
        for fault in CUTS {
            let mut after = files.after(fault);
            if !is_journalled(&after) {
                assert_eq!(after.cluster(), first.cluster(), "step {steps}, {fault:?}");
                continue;
            }
            complete(&mut after, &folder(), Path::new(PGDATA)).expect("it is completed");
            assert_eq!(after.cluster(), whole, "step {steps}, {fault:?}");
            undone(&mut after);
            assert_eq!(after.cluster(), first.cluster(), "step {steps}, {fault:?}");
        }
        if finished {
            return;
        }
    }
}

/// As a kill left it right after the journal was written.
fn journalled() -> Simulated {
    for steps in 0.. {
        let mut files = cluster();
        files.steps_left = Some(steps);
        let _killed = carry_out(&mut files, &folder(), &journal(), &beside());
        let after = files.after(Cut::Synced);
        if is_journalled(&after) {
            return after;
        }
    }
    unreachable!("the journal is written at some step")
}

#[test]
fn a_completion_that_is_cut_short_can_be_completed_or_undone() {
    let (first, whole) = (cluster().cluster(), applied().cluster());
    let planned = journalled();
    for steps in 0.. {
        let mut files = planned.clone();
        files.steps_left = Some(steps);
        let finished = complete(&mut files, &folder(), Path::new(PGDATA)).is_ok();
        for fault in CUTS {
            let mut after = files.after(fault);
            let mut other = after.clone();
            complete(&mut after, &folder(), Path::new(PGDATA)).expect("it is completed");
            assert_eq!(after.cluster(), whole, "step {steps}, {fault:?}");
            undone(&mut other);
            assert_eq!(other.cluster(), first, "step {steps}, {fault:?}");
        }
        if finished {
            return;
        }
    }
}

#[test]
fn what_a_kill_left_in_memory_lasts_after_a_completion() {
    let whole = applied().cluster();
    for steps in 0.. {
        let mut files = cluster();
        files.steps_left = Some(steps);
        let finished = carry_out(&mut files, &folder(), &journal(), &beside()).is_ok();
        files.steps_left = None;
        if is_journalled(&files) {
            complete(&mut files, &folder(), Path::new(PGDATA)).expect("it is completed");
            let after = files.after(Cut::Synced);
            assert_eq!(after.cluster(), whole, "step {steps}");
        }
        if finished {
            return;
        }
    }
}

#[test]
fn a_directory_that_was_made_and_not_given_away_is_finished() {
    let mut files = journalled();
    let path = Path::new("/data/pg_wal");
    files.create_directory(path).expect("no fault");
    complete(&mut files, &folder(), Path::new(PGDATA)).expect("it is completed");
    assert_eq!(files.cluster(), applied().cluster());
}

#[test]
fn a_directory_that_others_use_is_not_taken_back() {
    let mut files = applied();
    files.add("/data/pg_wal/of_a_server", b"bytes");
    let now = files.cluster();
    let error = take_back(&mut files, &folder(), Path::new(PGDATA)).expect_err("foreign");
    assert_eq!(
        error.to_string(),
        "pg_wal holds neither the bytes from before nor those from after, of_a_server came into it since: something else wrote to it, nothing was written"
    );
    assert_eq!(files.cluster(), now);
}

#[test]
fn a_completion_does_not_write_over_other_bytes() {
    let mut files = journalled();
    files
        .write_at(Path::new("/data/base/5/1"), 200, b"new rows")
        .expect("no fault");
    let hurt = files.cluster();
    let error = complete(&mut files, &folder(), Path::new(PGDATA)).expect_err("foreign bytes");
    assert!(
        error
            .to_string()
            .contains("something else wrote to it, nothing was written"),
        "{error}"
    );
    assert_eq!(files.cluster(), hurt);
}

#[test]
fn from_every_cut_the_first_bytes_come_back() {
    let first = cluster();
    let mut finished = false;
    for steps in 0.. {
        let mut files = first.clone();
        files.steps_left = Some(steps);
        finished = carry_out(&mut files, &folder(), &journal(), &beside()).is_ok();
        for cut in CUTS {
            let mut after = files.after(cut);
            undone(&mut after);
            assert_eq!(after.cluster(), first.cluster(), "step {steps}, {cut:?}");
            undone(&mut after);
            assert_eq!(
                after.cluster(),
                first.cluster(),
                "step {steps}, {cut:?}, twice"
            );
        }
        if finished {
            break;
        }
    }
    assert!(finished);
}

#[test]
fn an_undo_that_is_cut_short_can_be_undone_again() {
    let first = cluster();
    let mut applied = first.clone();
    carry_out(&mut applied, &folder(), &journal(), &beside()).expect("no fault");
    let applied = applied.after(Cut::Synced);
    assert_ne!(applied.cluster(), first.cluster());
    for steps in 0.. {
        let mut files = applied.clone();
        files.steps_left = Some(steps);
        let finished = take_back(&mut files, &folder(), Path::new(PGDATA)).is_ok();
        for cut in CUTS {
            let mut after = files.after(cut);
            take_back(&mut after, &folder(), Path::new(PGDATA)).expect("an undo");
            assert_eq!(after.cluster(), first.cluster(), "step {steps}, {cut:?}");
        }
        if finished {
            return;
        }
    }
}

/// They take room, and somebody may have removed them.
#[test]
fn what_was_appended_goes_without_the_bytes_beside_the_journal() {
    let mut files = applied();
    for name in ["longer", "made"] {
        files.remove(&folder().kept(name)).expect("no fault");
    }
    undone(&mut files);
    assert_eq!(files.cluster(), cluster().cluster());
}

/// A completion looks for what it has to append before it writes anything.
#[test]
fn nothing_is_completed_without_the_bytes_beside_the_journal() {
    for hurt in [&b""[..], &[0; 1300]] {
        let mut files = journalled();
        let path = folder().kept("longer");
        files.create(&path, None).expect("no fault");
        files.write_at(&path, 0, hurt).expect("no fault");
        let error = complete(&mut files, &folder(), Path::new(PGDATA)).expect_err("it is hurt");
        let words = "its file longer is missing or damaged";
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(files.cluster(), cluster().cluster());
    }
}

#[test]
fn other_bytes_are_not_overwritten() {
    let mut files = cluster();
    carry_out(&mut files, &folder(), &journal(), &beside()).expect("no fault");
    files
        .write_at(Path::new("/data/base/5/1"), 200, b"new rows")
        .expect("no fault");
    let hurt = files.cluster();
    let error = take_back(&mut files, &folder(), Path::new(PGDATA)).expect_err("foreign bytes");
    assert_eq!(
        error.to_string(),
        "base/5/1 holds neither the bytes from before nor those from after, at offset 100: something else wrote to it, nothing was written"
    );
    assert_eq!(files.cluster(), hurt);
}

#[test]
fn nothing_is_written_when_the_bytes_have_changed() {
    let mut files = cluster();
    files
        .write_at(Path::new("/data/base/5/1"), 200, b"new rows")
        .expect("no fault");
    let now = files.cluster();
    let error = carry_out(&mut files, &folder(), &journal(), &beside()).expect_err("changed");
    assert_eq!(
        error.to_string(),
        "base/5/1 has changed since the plan was made, other bytes stand at offset 100: nothing was written, make the plan again"
    );
    assert_eq!(files.cluster(), now);
    assert_eq!(files.len(&folder().file()).expect("no fault"), None);
}

#[test]
fn a_journal_of_another_cluster_is_refused() {
    let mut files = cluster();
    carry_out(&mut files, &folder(), &journal(), &beside()).expect("no fault");
    // Another cluster with the same files but for its number.
    files.add("/data/global/pg_control", &control_file(NUMBER + 1));
    let error = take_back(&mut files, &folder(), Path::new(PGDATA)).expect_err("another cluster");
    assert!(
        error
            .to_string()
            .starts_with("the journal belongs to the cluster 7123456789012345678"),
        "{error}"
    );
}

#[test]
fn a_patch_that_overlaps_itself_or_leaves_the_cluster_is_refused() {
    let mut wrong = journal();
    wrong.patch.changes.push(patch().changes[0].clone());
    let error = carry_out(&mut cluster(), &folder(), &wrong, &beside()).expect_err("overlap");
    assert_eq!(
        error.to_string(),
        "the plan cannot be carried out: two changes touch the same bytes of base/5/1"
    );
    let outside = Change::Remove {
        path: "../data/base/5/1".into(),
        kept: "x".into(),
    };
    wrong.patch.changes = vec![outside];
    let error = carry_out(&mut cluster(), &folder(), &wrong, &beside()).expect_err("outside");
    assert_eq!(
        error.to_string(),
        "../data/base/5/1 is not written to: it is not a plain path below the data directory"
    );
}
