//! `global/pg_control` is missing, cut, zeroed or otherwise not to be read.
//!
//! Truth: `ReadControlFile` in `src/backend/access/transam/xlog.c`.

use pgclinic_cluster::{Cluster, ControlState, file_place};
use pgclinic_format::control_file::{ControlFault, FILE_BYTES, seal};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_source::{SourceError, SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

pub(crate) const CONTROL_FILE: &str = "global/pg_control";
/// `sizeof(ControlFileData)` in 13 to 18: what the server reads of the file.
const READ_BY_SERVER: usize = 296;

/// The rule.
pub static CONTROL_FILE_UNREADABLE: Rule =
    Rule::from_page(include_str!("../../rules/control-file-unreadable.md"));

/// See [`CONTROL_FILE_UNREADABLE`].
pub struct ControlFileUnreadable;

impl ClusterCheck for ControlFileUnreadable {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CONTROL_FILE_UNREADABLE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let bytes = read_all(
            cluster.source().as_ref(),
            CONTROL_FILE,
            2 * FILE_BYTES as u64,
        );
        let draft = match (&bytes, &cluster.control) {
            // What is there and out of reach is no damage.
            (Err(error), _) if error.is_out_of_reach() => None,
            (Err(error), _) => Some(unread(error)),
            (Ok(bytes), ControlState::Fault(fault)) => Some(not_understood(bytes, fault)),
            (Ok(bytes), _) if bytes.len() != FILE_BYTES => Some(odd_length(bytes.len())),
            _ => None,
        };
        if let Some(draft) = draft {
            out.add(draft.place(file_place(CONTROL_FILE, FileKind::ControlFile)));
        }
    }
}

fn unread(error: &SourceError) -> Draft {
    let draft = Draft::new(&CONTROL_FILE_UNREADABLE, error.to_string());
    match error.kind {
        SourceErrorKind::NotFound => {
            draft.server_says("postgres: could not find the database system")
        }
        _ => draft,
    }
}

fn not_understood(bytes: &[u8], fault: &ControlFault) -> Draft {
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
        let message = format!("all {} bytes of the control file are zero", bytes.len());
        return with_server_words(Draft::new(&CONTROL_FILE_UNREADABLE, message), bytes, fault);
    }
    with_server_words(
        Draft::new(&CONTROL_FILE_UNREADABLE, fault.to_string()),
        bytes,
        fault,
    )
}

/// The server looks at the length first, then at the version, at the checksum, at the rest.
fn with_server_words(draft: Draft, bytes: &[u8], fault: &ControlFault) -> Draft {
    const INCOMPATIBLE: &str = "FATAL:  database files are incompatible with server";
    if bytes.len() < READ_BY_SERVER {
        return draft.server_says(short_words(bytes.len()));
    }
    match fault {
        ControlFault::FloatFormat if !carries_its_checksum(bytes) => {
            draft.server_says("FATAL:  incorrect checksum in control file")
        }
        ControlFault::FloatFormat | ControlFault::Version { .. } => draft.server_says(INCOMPATIBLE),
        ControlFault::Short { .. } | ControlFault::BigEndian => draft,
    }
}

fn carries_its_checksum(bytes: &[u8]) -> bool {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed) && sealed == bytes
}

fn odd_length(bytes: usize) -> Draft {
    let message = format!("the control file has {bytes} bytes, not {FILE_BYTES}");
    let draft = Draft::new(&CONTROL_FILE_UNREADABLE, message).fact("bytes", bytes);
    if bytes < READ_BY_SERVER {
        draft.server_says(short_words(bytes))
    } else {
        draft
    }
}

fn short_words(bytes: usize) -> String {
    format!("PANIC:  could not read file \"{CONTROL_FILE}\": read {bytes} of {READ_BY_SERVER}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_control_file};

    #[test]
    fn each_way_to_lose_it_has_the_servers_words() {
        let said = |bytes: Option<Vec<u8>>| {
            let draft = ClusterTrial::with_control_file(bytes)
                .drafts(&ControlFileUnreadable)
                .pop();
            draft.map(|draft| (draft.message, draft.server_says.unwrap_or_default()))
        };
        let sound = sound_control_file();
        assert_eq!(said(Some(sound.clone())), None);
        let (message, words) = said(Some(vec![0; 8192])).expect("zeroed");
        assert_eq!(message, "all 8192 bytes of the control file are zero");
        assert_eq!(words, "FATAL:  database files are incompatible with server");
        let (_, words) = said(Some(sound[..100].to_vec())).expect("cut");
        assert_eq!(
            words,
            "PANIC:  could not read file \"global/pg_control\": read 100 of 296"
        );
        let (message, _) =
            said(Some(sound[..4096].to_vec())).expect("truncated after the live part");
        assert_eq!(message, "the control file has 4096 bytes, not 8192");
        let (_, words) = said(None).expect("missing");
        assert_eq!(words, "postgres: could not find the database system");
    }
}
