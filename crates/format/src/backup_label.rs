//! `backup_label`: where recovery of a base backup begins.
//!
//! ```text
//! START WAL LOCATION: 0/2000028 (file 000000010000000000000002)
//! CHECKPOINT LOCATION: 0/2000060
//! BACKUP METHOD: streamed
//! BACKUP FROM: primary
//! START TIME: …
//! LABEL: …
//! START TIMELINE: 1
//! ```
//!
//! Truth: `read_backup_label` in `src/backend/access/transam/xlogrecovery.c`.

use crate::types::Lsn;
use crate::wal::parse_lsn;

/// What the server takes from the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupLabel {
    /// The redo point.
    pub start: Lsn,
    /// The name of the first segment.
    pub segment: String,
    /// Place of the checkpoint record.
    pub checkpoint: Lsn,
    /// Taken from a standby.
    pub from_standby: bool,
    /// `START TIMELINE`.
    pub timeline: Option<u32>,
    /// The folder holds parts of files only: the rest lies in the backup that began here.
    pub follows: Option<Follows>,
}

/// The backup that an incremental one builds on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Follows {
    /// `INCREMENTAL FROM LSN`: its `START WAL LOCATION`.
    pub start: Lsn,
    /// `INCREMENTAL FROM TLI`: its `START TIMELINE`.
    pub timeline: Option<u32>,
}

/// What the lines begin with that only incremental backups have.
const FOLLOWS: &str = "INCREMENTAL FROM ";

impl BackupLabel {
    /// Reads the file; the error is the line that is not as it must be, from 1.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let mut lines = text.split_inclusive('\n');
        let (start, segment) = lines.next().and_then(start_line).ok_or(1usize)?;
        let checkpoint = lines.next().and_then(checkpoint_line).ok_or(2usize)?;
        let mut label = BackupLabel {
            start,
            segment,
            checkpoint,
            from_standby: false,
            timeline: None,
            follows: None,
        };
        let mut follows_timeline = None;
        for (number, line) in (3usize..).zip(lines) {
            let Some((key, value)) = line.trim_end().split_once(": ") else {
                continue;
            };
            match key {
                "BACKUP FROM" => label.from_standby = value == "standby",
                "START TIMELINE" => label.timeline = value.parse().ok(),
                "INCREMENTAL FROM LSN" => {
                    let start = parse_lsn(value).ok_or(number)?;
                    label.follows = Some(Follows {
                        start,
                        timeline: None,
                    });
                }
                "INCREMENTAL FROM TLI" => follows_timeline = value.parse().ok(),
                _ => {}
            }
        }
        if let Some(follows) = &mut label.follows {
            follows.timeline = follows_timeline;
        }
        Ok(label)
    }

    /// The file as it is of a backup put together from a chain.
    pub fn without_follows(text: &str) -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| !line.starts_with(FOLLOWS)).collect()
    }
}

fn start_line(line: &str) -> Option<(Lsn, String)> {
    let rest = line
        .strip_suffix('\n')?
        .strip_prefix("START WAL LOCATION: ")?;
    let (lsn, file) = rest.trim_end_matches('\r').split_once(" (file ")?;
    let name = file.strip_suffix(')')?;
    let plain = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then_some((parse_lsn(lsn)?, name.to_owned()))
}

fn checkpoint_line(line: &str) -> Option<Lsn> {
    let rest = line
        .strip_suffix('\n')?
        .strip_prefix("CHECKPOINT LOCATION: ")?;
    parse_lsn(rest.trim_end_matches('\r'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::string_slice, reason = "a test that panics has failed")]

    use super::*;

    const TEXT: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
        CHECKPOINT LOCATION: 0/2000060\nBACKUP METHOD: streamed\nBACKUP FROM: standby\n\
        START TIME: 2026-01-01 10:00:00 GMT\nLABEL: pg_basebackup base backup\nSTART TIMELINE: 1\n";

    #[test]
    fn what_recovery_needs_is_read() {
        let label = BackupLabel::parse(TEXT).expect("a label");
        assert_eq!(
            (label.start, label.checkpoint),
            (Lsn(0x200_0028), Lsn(0x200_0060))
        );
        assert_eq!((label.from_standby, label.timeline), (true, Some(1)));
        assert_eq!(label.follows, None);
    }

    #[test]
    fn an_incremental_backup_says_what_it_builds_on() {
        let text = format!("{TEXT}INCREMENTAL FROM LSN: 0/1000028\nINCREMENTAL FROM TLI: 1\n");
        let label = BackupLabel::parse(&text).expect("a label");
        let before = Follows {
            start: Lsn(0x100_0028),
            timeline: Some(1),
        };
        assert_eq!(label.follows, Some(before));
        assert_eq!(BackupLabel::without_follows(&text), TEXT);
        let wrong = text.replace("LSN: 0/1000028", "LSN: here");
        assert_eq!(BackupLabel::parse(&wrong), Err(8));
    }

    #[test]
    fn the_server_insists_on_the_first_two_lines_whole() {
        assert_eq!(BackupLabel::parse(""), Err(1));
        assert_eq!(BackupLabel::parse(&TEXT[1..]), Err(1));
        assert_eq!(
            BackupLabel::parse(&TEXT.replace("CHECKPOINT", "CHECK")),
            Err(2)
        );
        assert_eq!(BackupLabel::parse(&TEXT[..80]), Err(2));
    }
}
