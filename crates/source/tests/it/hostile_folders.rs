//! What may lie in a data directory besides regular files, and must neither hang nor harm.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pgclinic_source::{
    DataDirectory, Entry, EntryKind, SingleFile, Source, SourceErrorKind, read_all,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn kinds(entries: &[Entry]) -> Vec<(&str, EntryKind)> {
    entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind))
        .collect()
}

#[test]
fn a_fifo_or_socket_named_like_a_relation_is_never_opened() -> Outcome {
    let folder = tempfile::tempdir()?;
    mknodat(
        CWD,
        folder.path().join("16384"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )?;
    let _socket = UnixListener::bind(folder.path().join("16385"))?;
    symlink("/dev/zero", folder.path().join("16386"))?;
    let source = DataDirectory::open(folder.path())?;
    let listed = source.list("")?;
    let other = EntryKind::Other;
    assert_eq!(
        kinds(&listed),
        [("16384", other), ("16385", other), ("16386", other)]
    );
    for name in ["16384", "16385", "16386"] {
        assert_eq!(
            source.read_at(name, 0, &mut [0]).map_err(|e| e.kind),
            Err(SourceErrorKind::NotRegular)
        );
        assert_eq!(
            source.list(name).map_err(|e| e.kind),
            Err(SourceErrorKind::NotRegular)
        );
        assert_eq!(
            source.len(name).map_err(|e| e.kind),
            Err(SourceErrorKind::NotRegular)
        );
    }
    let said = SingleFile::open(&folder.path().join("16384"))
        .err()
        .map(|error| error.to_string());
    assert!(said.is_some_and(|said| said.ends_with("it is a FIFO, not a regular file")));
    Ok(())
}

#[test]
fn links_are_followed_where_they_lead_somewhere() -> Outcome {
    let (folder, tablespace) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::create_dir_all(tablespace.path().join("PG_18_202506291/5"))?;
    fs::write(tablespace.path().join("PG_18_202506291/5/16400"), "rows")?;
    fs::create_dir(folder.path().join("pg_tblspc"))?;
    symlink(tablespace.path(), folder.path().join("pg_tblspc/16390"))?;
    symlink("/no/such/folder", folder.path().join("pg_tblspc/16391"))?;
    symlink("16392", folder.path().join("pg_tblspc/16392"))?;
    let source = DataDirectory::open(folder.path())?;

    let listed = source.list("pg_tblspc")?;
    let expected = [
        ("16390", EntryKind::Folder),
        ("16391", EntryKind::Other),
        ("16392", EntryKind::Other),
    ];
    assert_eq!(kinds(&listed), expected);
    assert_eq!(
        read_all(&source, "pg_tblspc/16390/PG_18_202506291/5/16400", 10)?,
        b"rows"
    );
    assert_eq!(
        source.list("pg_tblspc/16391").map_err(|e| e.kind),
        Err(SourceErrorKind::NotFound)
    );
    let circle = source
        .list("pg_tblspc/16392")
        .map_err(|error| error.to_string());
    assert_eq!(
        circle,
        Err("cannot read pg_tblspc/16392: symbolic links lead in a circle".to_owned())
    );
    Ok(())
}

#[test]
fn a_name_that_is_not_utf8_is_shown_but_not_opened() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join(OsStr::from_bytes(b"16384\xff")), "x")?;
    let listed = DataDirectory::open(folder.path())?.list("")?;
    assert_eq!(kinds(&listed), [("16384\\xff", EntryKind::Other)]);
    Ok(())
}

#[test]
fn reading_leaves_the_access_times_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("16384");
    fs::write(&path, "rows")?;
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(&path)?.set_times(fs::FileTimes::new().set_accessed(long_ago))?;
    fs::File::open(folder.path())?.set_times(fs::FileTimes::new().set_accessed(long_ago))?;
    let source = DataDirectory::open(folder.path())?;
    source.list("")?;
    read_all(&source, "16384", 10)?;
    assert_eq!(fs::metadata(&path)?.atime(), 1_000_000_000);
    assert_eq!(fs::metadata(folder.path())?.atime(), 1_000_000_000);
    Ok(())
}

#[test]
fn a_file_put_in_the_place_of_another_is_noticed_by_its_length() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("16384"), "old")?;
    let source = DataDirectory::open(folder.path())?;
    assert_eq!(read_all(&source, "16384", 10)?, b"old");
    fs::write(folder.path().join("new"), "newer")?;
    fs::rename(folder.path().join("new"), folder.path().join("16384"))?;
    assert_eq!(source.len("16384")?, 5);
    assert_eq!(read_all(&source, "16384", 10)?, b"newer");
    Ok(())
}

#[test]
fn a_folder_that_is_none_is_said_so() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("file");
    fs::write(&file, "")?;
    let open = |path: &Path| DataDirectory::open(path).err().map(|error| error.kind);
    assert_eq!(
        open(&folder.path().join("missing")),
        Some(SourceErrorKind::NotFound)
    );
    assert_eq!(open(&file), Some(SourceErrorKind::NotRegular));
    Ok(())
}

#[test]
fn files_of_others_are_read_as_far_as_permitted() -> Outcome {
    // Only an owner may ask for unchanged access times; everybody else reads without.
    let root = DataDirectory::open(Path::new("/"))?;
    assert!(!root.list("etc")?.is_empty());
    assert!(!read_all(&root, "etc/passwd", 1 << 20)?.is_empty());

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("16384");
    fs::write(&path, "rows")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000))?;
    match read_all(&DataDirectory::open(folder.path())?, "16384", 10) {
        Ok(_) => assert!(rustix::process::geteuid().is_root()),
        Err(error) => assert_eq!(error.to_string(), "cannot read 16384: permission denied"),
    }
    Ok(())
}
