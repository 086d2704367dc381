//! Archives that lie, were cut or grow without end.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use pgclinic_format::tar::build_header;
use pgclinic_source::{EntryKind, Source, SourceErrorKind, TarBackup};

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A member with its content, filled up.
fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = build_header(name.as_bytes(), content.len() as u64, b'0').to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

const END: [u8; 1024] = [0; 1024];

struct Archive {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn archive(name: &str, bytes: &[u8]) -> Archive {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    Archive {
        path,
        _folder: folder,
    }
}

fn opened(path: &Path) -> TarBackup {
    TarBackup::open(path, &std::env::temp_dir(), &mut go_on).unwrap()
}

#[track_caller]
fn told(source: &TarBackup, words: &str) {
    let troubles = source.troubles();
    assert!(
        troubles.iter().any(|one| one.contains(words)),
        "{troubles:?}"
    );
}

#[test]
fn names_that_lead_out_are_left_out_and_told() {
    let all = [
        member("/etc/passwd", b"x"),
        member("../../x", b"x"),
        member("base/1", b"y"),
        END.to_vec(),
    ];
    let kept = archive("base.tar", &all.concat());
    let source = opened(&kept.path);
    told(&source, "2 members have names that lead out");
    assert_eq!(source.len("base/1"), Ok(1));
    assert!(source.list("etc").is_err());
}

#[test]
fn links_and_devices_are_names_only() {
    let mut bytes = Vec::new();
    for (name, flag) in [("a", b'1'), ("b", b'2'), ("c", b'3'), ("d", b'6')] {
        bytes.extend(build_header(name.as_bytes(), 0, flag));
    }
    bytes.extend(END);
    let kept = archive("base.tar", &bytes);
    let source = opened(&kept.path);
    let entries = source.list("").unwrap();
    assert_eq!(entries.len(), 4);
    assert!(entries.iter().all(|entry| entry.kind == EntryKind::Other));
    assert_eq!(
        source.len("b").map_err(|error| error.kind),
        Err(SourceErrorKind::NotRegular)
    );
}

#[test]
fn a_length_that_lies_gives_what_is_there() {
    for size in [1 << 40, u64::MAX, u64::MAX - 600] {
        let mut bytes = member("base/1", b"whole");
        bytes.extend(build_header(b"base/2", size, b'0'));
        bytes.extend([7; 700]);
        let kept = archive("base.tar", &bytes);
        let source = opened(&kept.path);
        told(&source, "base/2");
        assert_eq!(source.len("base/1"), Ok(5));
        assert_eq!(source.len("base/2"), Ok(700), "{size}");
        let mut buf = [0; 1000];
        assert_eq!(source.read_at("base/2", 600, &mut buf), Ok(100));
        assert_eq!(source.read_at("base/2", u64::MAX, &mut buf), Ok(0));
    }
}

#[test]
fn a_cut_archive_gives_what_came_before() {
    let whole = [
        member("base/1", &[1; 9000]),
        member("base/2", &[2; 90_000]),
        END.to_vec(),
    ]
    .concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(&whole).unwrap();
    let packed = packed.finish().unwrap();
    for (name, bytes) in [
        ("base.tar", &whole[..50_000]),
        ("base.tar.gz", &packed[..50_000]),
    ] {
        let kept = archive(name, bytes);
        let source = opened(&kept.path);
        assert_eq!(source.troubles().len(), 1, "{:?}", source.troubles());
        assert_eq!(source.len("base/1"), Ok(9000));
        let len = source.len("base/2").unwrap();
        assert!((1..90_000).contains(&len), "{name}: {len}");
        let mut buf = vec![0; 90_000];
        assert_eq!(
            source
                .read_at("base/2", 0, &mut buf)
                .map(|count| count as u64),
            Ok(len)
        );
        assert!(buf[..len as usize].iter().all(|byte| *byte == 2));
    }
    let kept = archive("base.tar", &whole[..whole.len() - 1024]);
    told(&opened(&kept.path), "the end mark is missing");
}

#[test]
fn rubbish_behind_a_member_is_told() {
    let kept = archive(
        "base.tar",
        &[member("base/1", b"x"), vec![b'x'; 2000]].concat(),
    );
    let source = opened(&kept.path);
    told(&source, "stands no header");
    assert_eq!(source.len("base/1"), Ok(1));
}

#[test]
fn what_is_no_archive_is_refused() {
    let kept = archive("base.tar", b"hello");
    let refused = TarBackup::open(&kept.path, &std::env::temp_dir(), &mut go_on).map(|_| ());
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("no tar archive"), "{error}");
}

#[test]
fn unpacking_without_end_can_be_stopped() {
    let mut bytes = member("base/1", b"x");
    bytes.extend(build_header(b"base/2", 1 << 40, b'0'));
    bytes.resize(bytes.len() + (64 << 20), 0);
    let packed = zstd::encode_all(bytes.as_slice(), 1).unwrap();
    assert!(packed.len() < 100_000, "a bomb: {} bytes", packed.len());
    let kept = archive("base.tar.zst", &packed);
    let mut unpacked = 0;
    let mut stop_soon = |more| {
        unpacked += more;
        if unpacked > 10 << 20 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let stopped = TarBackup::open(&kept.path, &std::env::temp_dir(), &mut stop_soon).map(|_| ());
    assert!(stopped.unwrap_err().why.contains("interrupted"));
    assert!(unpacked < 12 << 20, "{unpacked}");
}

/// A bomb that ends: it takes no disk, and all of it is there.
#[test]
fn what_shrinks_to_nothing_reads_as_what_it_is() {
    let content = [vec![0; 20 << 20], vec![7; 1 << 20]].concat();
    let bytes = [member("base/1", &content), END.to_vec()].concat();
    let packed = zstd::encode_all(bytes.as_slice(), 1).unwrap();
    let kept = archive("base.tar.zst", &packed);
    let source = opened(&kept.path);
    assert_eq!(source.troubles(), &[] as &[String]);
    assert!(source.unpacked_bytes() > 21 << 20);
    // The last block, which is not full, is not packed.
    let stored = source.stored_bytes();
    assert!(stored < 128 << 10, "{stored}");
    let whole = pgclinic_source::read_all(&source, "base/1", 1 << 30).unwrap();
    assert!(whole == content);
    let mut border = [9; 10];
    let at = (20 << 20) - 5;
    assert_eq!(source.read_at("base/1", at, &mut border), Ok(10));
    assert_eq!(border, [0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
}

#[test]
fn spilling_into_a_cluster_is_refused() {
    let cluster = tempfile::tempdir().unwrap();
    fs::write(cluster.path().join("PG_VERSION"), "18\n").unwrap();
    let packed = zstd::encode_all(&END[..], 1).unwrap();
    let kept = archive("base.tar.zst", &packed);
    let refused = TarBackup::open(&kept.path, cluster.path(), &mut go_on).map(|_| ());
    assert!(refused.unwrap_err().why.contains("lies inside the cluster"));
}

#[test]
fn long_names_are_read_and_never_believed() {
    let name = "pg_replslot/".to_owned() + &"x".repeat(120);
    let mut bytes = build_header(b"././@LongLink", name.len() as u64 + 1, b'L').to_vec();
    bytes.extend(name.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes.extend(member("short", b"content"));
    // A name of a million bytes: its begin is read, and no backup has it.
    bytes.extend(build_header(b"././@LongLink", 1 << 20, b'L'));
    bytes.resize(bytes.len() + (1 << 20), b'y');
    bytes.extend(member("other", b"content"));
    bytes.extend(END);
    let kept = archive("base.tar", &bytes);
    let source = opened(&kept.path);
    assert_eq!(source.len(&name), Ok(7));
    told(&source, "1 members have names");
}
