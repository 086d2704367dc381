//! Archives as GNU tar makes them of a data directory: with holes, with hard links, and with the
//! folder itself.

use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_source::tar::{PackedArchives, TarStream};
use pgclinic_source::{EntryKind, Source, TarBackup, read_all};

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

const VERSION: &str = "PG_VERSION";
const CONTROL: &str = "global/pg_control";
const RELATION: &str = "base/5/16384";
const HOLES: &str = "base/5/16385";
const HOLES_BYTES: u64 = 3 << 20;

/// A folder `data` that looks like a cluster; one of its files is of twelve islands, with a hole at
/// its end.
struct Made(tempfile::TempDir);

impl Made {
    fn new() -> Self {
        let made = Made(tempfile::tempdir().unwrap());
        for folder in ["base/5", "global"] {
            fs::create_dir_all(made.data().join(folder)).unwrap();
        }
        fs::write(made.data().join(VERSION), "18\n").unwrap();
        fs::write(made.data().join(CONTROL), [1u8; 8192]).unwrap();
        fs::write(made.data().join(RELATION), [2u8; 20_000]).unwrap();
        let holes = File::create(made.data().join(HOLES)).unwrap();
        holes.set_len(HOLES_BYTES).unwrap();
        for number in 0..12u8 {
            let at = u64::from(number) * (128 << 10);
            holes.write_all_at(&[number + 1; 8192], at).unwrap();
        }
        made
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Runs `tar` in the folder above.
    fn tar(&self, arguments: &[&str]) -> PathBuf {
        let to = self.0.path().join("base.tar");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(self.0.path()).arg("-cf").arg(&to);
        assert!(tar.args(arguments).status().unwrap().success());
        to
    }
}

fn packed(plain: &Path) -> PathBuf {
    let to = plain.with_extension("tar.gz");
    let file = File::create(&to).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(&fs::read(plain).unwrap()).unwrap();
    packed.finish().unwrap();
    to
}

/// A path, what it is, and its content.
type Seen = (String, EntryKind, Vec<u8>);

/// All files that pass by with their contents, and troubles.
fn passing(path: &Path) -> (Vec<Seen>, Vec<String>) {
    let archives = PackedArchives::of(path).unwrap().expect("it is compressed");
    let mut stream = TarStream::new(archives);
    let (mut files, mut buf) = (Vec::new(), vec![0; 5000]);
    while let Some(file) = stream.next_file().unwrap() {
        let mut content = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut buf) {
            content.extend_from_slice(&buf[..count]);
        }
        assert!(file.kind != EntryKind::File || file.len == content.len() as u64);
        files.push((file.path, file.kind, content));
    }
    (files, stream.troubles())
}

/// The files are there with their contents, in place and passing by.
#[track_caller]
fn is_all_there(made: &Made, plain: &Path, names: &[&str]) {
    let packed = packed(plain);
    let opened = |path: &Path| TarBackup::open(path, &std::env::temp_dir(), &mut go_on).unwrap();
    let (files, troubles) = passing(&packed);
    assert_eq!(troubles, Vec::<String>::new());
    for source in [opened(plain), opened(&packed)] {
        assert_eq!(source.troubles(), &[] as &[String]);
        for name in names {
            let expected = fs::read(made.data().join(name)).unwrap();
            assert_eq!(source.len(name), Ok(expected.len() as u64), "{name}");
            let whole = read_all(&source, name, 1 << 30).unwrap();
            assert!(whole == expected, "{name} in place");
            for at in [0, 4000, 8191, 8192, 131_071, 131_072, expected.len()] {
                let mut part = vec![9; 10_000];
                let count = source.read_at(name, at as u64, &mut part).unwrap();
                let rest = expected.get(at..).unwrap_or_default();
                assert_eq!(count, rest.len().min(10_000), "{name} at {at}");
                assert!(part[..count] == rest[..count], "{name} at {at}");
            }
            let file = files.iter().find(|(path, ..)| path == name);
            let (_, kind, content) = file.unwrap_or_else(|| panic!("{name} does not pass by"));
            assert_eq!(*kind, EntryKind::File, "{name}");
            assert!(*content == expected, "{name} passing by");
        }
    }
}

#[test]
fn holes_are_filled_in_every_format() {
    let made = Made::new();
    let formats: [&[&str]; 4] = [
        &["--format=gnu"],
        &["--format=pax"],
        &["--format=pax", "--sparse-version=0.1"],
        &["--format=pax", "--sparse-version=0.0"],
    ];
    for format in formats {
        let line = [&["--sparse"][..], format, &["-C", "data", "."]].concat();
        let archive = made.tar(&line);
        let len = archive.metadata().unwrap().len();
        assert!(
            len < HOLES_BYTES / 2,
            "{format:?}: the file system knows holes"
        );
        is_all_there(&made, &archive, &[VERSION, CONTROL, RELATION, HOLES]);
    }
}

#[test]
fn a_cut_in_a_file_with_holes_leaves_what_came() {
    let made = Made::new();
    for format in ["--format=gnu", "--format=pax"] {
        let archive = made.tar(&["--sparse", format, "-C", "data", HOLES]);
        let file = File::options().write(true).open(&archive).unwrap();
        // Heads and the map take some blocks, two islands and a half the rest.
        file.set_len(2 * 8192 + 4096 + 2048).unwrap();
        let source = TarBackup::open(&archive, &std::env::temp_dir(), &mut go_on).unwrap();
        assert_eq!(source.troubles().len(), 1, "{:?}", source.troubles());
        let len = source.len(HOLES).unwrap();
        assert!(
            (2 * (128 << 10)..2 * (128 << 10) + 8192).contains(&len),
            "{len}"
        );
        let whole = read_all(&source, HOLES, 1 << 30).unwrap();
        let expected = fs::read(made.data().join(HOLES)).unwrap();
        assert!(whole == expected[..whole.len()]);
    }
}

#[test]
fn the_folder_itself_is_no_part_of_names() {
    let made = Made::new();
    for name in ["data", "./data"] {
        let archive = made.tar(&[name]);
        is_all_there(&made, &archive, &[VERSION, CONTROL, RELATION]);
    }
    // Without its folder as a member the data directory is known only when all has passed.
    let names = [VERSION, CONTROL, RELATION].map(|name| format!("data/{name}"));
    let archive = made.tar(&names.each_ref().map(String::as_str));
    let source = TarBackup::open(&archive, &std::env::temp_dir(), &mut go_on).unwrap();
    assert_eq!(source.len(RELATION), Ok(20_000));
    let (_, troubles) = passing(&packed(&archive));
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(
        troubles[0].contains("the data directory lies in a directory"),
        "{troubles:?}"
    );
}

#[test]
fn a_hard_link_is_its_target_where_that_can_be_read_again() {
    let made = Made::new();
    let link = "base/5/16386";
    fs::hard_link(made.data().join(RELATION), made.data().join(link)).unwrap();
    for format in ["--format=gnu", "--format=pax", "--format=v7"] {
        let archive = made.tar(&[format, "data"]);
        let source = TarBackup::open(&archive, &std::env::temp_dir(), &mut go_on).unwrap();
        assert_eq!(source.troubles(), &[] as &[String]);
        for name in [RELATION, link] {
            let content = read_all(&source, name, 1 << 30).unwrap();
            assert!(content == [2; 20_000], "{name}");
        }
        // What passed by cannot be had again; who sees this opens the archive in the other way.
        let (_, troubles) = passing(&packed(&archive));
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert!(troubles[0].contains("1 members are links"), "{troubles:?}");
    }
}

#[test]
fn a_map_that_lies_is_told_and_its_file_is_not_missing() {
    let made = Made::new();
    let archive = made.tar(&["--sparse", "--format=pax", "-C", "data", HOLES, RELATION]);
    let mut bytes = fs::read(&archive).unwrap();
    let at = bytes
        .windows(10)
        .position(|part| part == b"13\n0\n8192\n")
        .unwrap();
    bytes[at] = b'x';
    fs::write(&archive, bytes).unwrap();
    let source = TarBackup::open(&archive, &std::env::temp_dir(), &mut go_on).unwrap();
    assert_eq!(source.troubles().len(), 1);
    assert!(
        source.troubles()[0].contains(HOLES),
        "{:?}",
        source.troubles()
    );
    assert_eq!(source.len(HOLES), Ok(0), "it is there");
    assert!(source.read_at(HOLES, 0, &mut [0; 10]).is_err());
    assert_eq!(source.len(RELATION), Ok(20_000), "the rest is not lost");
    let (files, troubles) = passing(&packed(&archive));
    assert!(troubles[0].contains(HOLES), "{troubles:?}");
    assert_eq!(files.len(), 2);
}
