//! A cluster of which a part is known not to be there, as of an archive that was cut: `PG_VERSION`
//! and the control file may stand behind the cut. What is there of databases and WAL tells the
//! major too.

use pgclinic_source::Source;

use crate::control_state::{ControlState, read_control, read_version};
use crate::error::OpenError;
use crate::major::{layout_of_wal, majors_of_databases};

/// Version and control file, as far as the part that is there tells them.
///
/// # Errors
///
/// Nothing is of a cluster, or nothing tells its major, or the version cannot be read.
pub(crate) fn read_major_and_control(
    source: &dyn Source,
) -> Result<(Option<u16>, ControlState), OpenError> {
    let major = match read_version(source) {
        Ok(Some(major)) => Some(major),
        Ok(None) | Err(OpenError::NoCluster { .. }) => major_of_parts(source),
        // The file may be truncated itself.
        Err(OpenError::Version { found }) if found.len() == 1 => major_of_parts(source),
        Err(error) => return Err(error),
    };
    let control = match read_control(source) {
        Err(OpenError::NoCluster { missing }) => {
            ControlState::Unreadable(format!("{missing}: not in the part that is there"))
        }
        control => control?,
    };
    let is_known = major.is_some() || control.trusted().is_some();
    match (is_of_a_cluster(source), is_known) {
        (false, _) => Err(OpenError::NoCluster {
            missing: "PG_VERSION",
        }),
        (true, false) => Err(OpenError::UnknownMajor),
        (true, true) => Ok((major, control)),
    }
}

/// What every backup has, and hardly anything else: a label, databases, shared relations.
fn is_of_a_cluster(source: &dyn Source) -> bool {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let holds = |folder, is_own: &dyn Fn(&str) -> bool| {
        let entries = source.list(folder).unwrap_or_default();
        entries.iter().any(|entry| is_own(&entry.name))
    };
    source.len("backup_label").is_ok()
        || holds("base", &is_number)
        || holds("global", &|name| is_number(name) || name.starts_with("pg_"))
}

/// As the folders of databases say it, else as WAL does.
fn major_of_parts(source: &dyn Source) -> Option<u16> {
    let by_databases = majors_of_databases(source).into_iter().next();
    by_databases.or_else(|| layout_of_wal(source).map(|own| own.major))
}

#[cfg(test)]
mod tests {
    use pgclinic_source::Memory;

    use super::*;

    fn major(files: &[(&str, &[u8])]) -> Option<u16> {
        let memory = files
            .iter()
            .fold(Memory::new("a part"), |memory, (path, bytes)| {
                memory.with(*path, bytes.to_vec())
            });
        major_of_parts(&memory)
    }

    #[test]
    fn a_label_databases_or_shared_relations_make_a_cluster() {
        let is = |path: &str| is_of_a_cluster(&Memory::new("a part").with(path, b"x".to_vec()));
        for path in [
            "backup_label",
            "base/5/1259",
            "global/1262",
            "global/pg_control",
        ] {
            assert!(is(path), "{path}");
        }
        for path in [
            "base/letters",
            "global/words",
            "postgresql.conf",
            "pg_wal/x",
        ] {
            assert!(!is(path), "{path}");
        }
    }

    #[test]
    fn databases_and_wal_tell_the_major() {
        let segment = "pg_wal/000000010000000000000002";
        assert_eq!(major(&[("base/1/PG_VERSION", b"15\n")]), Some(15));
        assert_eq!(
            major(&[("base/1/1259", b"x"), ("base/5/PG_VERSION", b"17\n")]),
            Some(17)
        );
        assert_eq!(major(&[("base/1/PG_VERSION", b"1")]), None);
        assert_eq!(major(&[(segment, &[0x06, 0xD1, 5])]), Some(13));
        assert_eq!(major(&[(segment, &[0x18, 0xD1])]), Some(18));
        assert_eq!(major(&[(segment, &[0, 0])]), None);
        assert_eq!(major(&[("pg_wal/00000002.history", &[0x18, 0xD1])]), None);
        assert_eq!(major(&[("global/1262", b"x")]), None);
    }
}
