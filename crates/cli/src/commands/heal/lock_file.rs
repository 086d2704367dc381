//! A `postmaster.pid` that names no process: every server that is started refuses it. It is not set
//! aside, since a server that is about to start has written nothing into it yet.
//!
//! Truth: `CreateLockFile` in `src/backend/utils/init/miscinit.c`.

use std::path::Path;

use pgclinic_model::document::NotHealed;
use pgclinic_surgery::safety::{LOCK_FILE, LockFile};

/// Why no server starts beside it, with the way out; nothing where one would.
pub(super) fn unusable(pgdata: &Path) -> Option<NotHealed> {
    let why = match LockFile::of(pgdata) {
        Ok(LockFile::Absent) => return None,
        Ok(LockFile::NotRegular) => "no server starts: it is no regular file".into(),
        Ok(LockFile::Begins(bytes)) => refusal(&bytes)?.to_owned(),
        Err(error) => format!("whether a server starts is unknown: it cannot be read: {error}"),
    };
    Some(NotHealed {
        path: LOCK_FILE.to_owned(),
        relation: None,
        blocks: Vec::new(),
        needs_loss: false,
        why: vec![
            why,
            "remove the file once no server process runs on this directory, neither here nor in a container or on another machine".to_owned(),
        ],
        commands: Vec::new(),
    })
}

/// What a server says of these first bytes, which it reads as `atoi` does.
fn refusal(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("no server starts: FATAL:  lock file \"postmaster.pid\" is empty");
    }
    let number = bytes.trim_ascii_start();
    let number = number
        .strip_prefix(b"-")
        .or_else(|| number.strip_prefix(b"+"))
        .unwrap_or(number);
    let mut digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    let names_a_process = digits.any(|digit| *digit != b'0');
    (!names_a_process)
        .then_some("no server starts: FATAL:  bogus data in lock file \"postmaster.pid\"")
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn a_file_that_names_no_process_keeps_every_server_from_starting() {
        assert!(refusal(b"").is_some_and(|why| why.ends_with("is empty")));
        for bogus in [&b"\0\0\0\0"[..], b"pid", b"0\n", b"-\n"] {
            assert!(refusal(bogus).is_some_and(|why| why.contains("bogus")));
        }
        // A single-user server writes its number negative.
        for right in [&b"4711\n/data\n"[..], b"-4711", b" 12"] {
            assert_eq!(refusal(right), None);
        }
    }
}
