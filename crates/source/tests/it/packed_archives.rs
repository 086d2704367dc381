//! What is packed, to its very end: checksums, cuts, frames of every kind, and archives that are
//! packed each in its own way.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use pgclinic_format::tar::build_header;
use pgclinic_source::tar::{PackedArchives, TarStream, is_archive};
use pgclinic_source::{Source, TarBackup};

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = build_header(name.as_bytes(), content.len() as u64, b'0').to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A small archive, filled up as tapes are.
fn sample() -> Vec<u8> {
    let mut bytes = member("base/5/16384", &[7; 20_000]);
    bytes.resize(40 * 512 + 10_240, 0);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
    let mut packed = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.include_checksum(true).unwrap();
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// `lz4 -l`: blocks of 8 MiB with their lengths.
fn old_lz4(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x02, 0x21, 0x4c, 0x18];
    for block in bytes.chunks(8 << 20) {
        let block = lz4_flex::block::compress(block);
        packed.extend((block.len() as u32).to_le_bytes());
        packed.extend(block);
    }
    packed
}

fn skipped(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x50, 0x2a, 0x4d, 0x18];
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    bytes
}

/// A folder with files, archives or others.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// What is seen in place: files with their lengths, and troubles.
fn in_place(path: &Path) -> (Option<u64>, Vec<String>) {
    let source = TarBackup::open(path, &std::env::temp_dir(), &mut go_on).unwrap();
    let len = source.len("base/5/16384").ok();
    (len, source.troubles().to_vec())
}

/// What passes by: files with their lengths, and troubles.
fn passing(path: &Path) -> (Vec<(String, u64)>, Vec<String>) {
    let archives = PackedArchives::of(path).unwrap().expect("it is compressed");
    let mut stream = TarStream::new(archives);
    let (mut files, mut buf) = (Vec::new(), vec![0; 8192]);
    let broken = loop {
        let file = match stream.next_file() {
            Ok(Some(file)) => file,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        let mut len = 0;
        while let Ok(count @ 1..) = stream.read(&mut buf) {
            len += count as u64;
        }
        files.push((file.path, len));
    };
    let troubles = stream.troubles();
    (files, troubles.into_iter().chain(broken).collect())
}

#[track_caller]
fn is_whole(path: &Path) {
    assert!(is_archive(path), "{}", path.display());
    assert_eq!(in_place(path), (Some(20_000), vec![]), "{}", path.display());
    let expected = vec![("base/5/16384".to_owned(), 20_000)];
    assert_eq!(passing(path), (expected, vec![]), "{}", path.display());
}

#[track_caller]
fn is_told(path: &Path, words: &str) {
    let (len, troubles) = in_place(path);
    assert_eq!(len, Some(20_000), "what came is there");
    assert!(
        troubles.iter().any(|why| why.contains(words)),
        "{troubles:?}"
    );
    let (_, troubles) = passing(path);
    assert!(
        troubles.iter().any(|why| why.contains(words)),
        "{troubles:?}"
    );
}

const NOT_TO_ITS_END: &str = "it cannot be decompressed to its end";

#[test]
fn checksums_behind_the_end_mark_are_held_against_what_came() {
    let folder = Folder::new();
    let forms: [(&str, Vec<u8>, usize); 3] = [
        ("base.tar.gz", gzip(&sample()), 8),
        ("base.tar.lz4", lz4(&sample()), 4),
        ("base.tar.zst", zstd(&sample()), 4),
    ];
    for (name, packed, from_end) in forms {
        is_whole(&folder.put(name, &packed));
        let mut changed = packed.clone();
        let at = changed.len() - from_end;
        changed[at] ^= 1;
        is_told(&folder.put(name, &changed), NOT_TO_ITS_END);
        is_told(
            &folder.put(name, &packed[..packed.len() - 3]),
            NOT_TO_ITS_END,
        );
        fs::remove_file(folder.0.path().join(name)).unwrap();
    }
}

/// The archive is whole, and what is packed is not: the last 20 bytes are of zeros behind the end
/// mark.
#[test]
fn a_cut_behind_the_end_mark_is_told() {
    let mut noise = sample();
    noise.extend((0..2000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8));
    let folder = Folder::new();
    let packed = gzip(&noise);
    let path = folder.put("base.tar.gz", &packed[..packed.len() - 20]);
    is_told(&path, NOT_TO_ITS_END);
}

#[test]
fn several_members_and_rubbish_behind_the_last_are_fine_with_gzip() {
    let bytes = sample();
    let folder = Folder::new();
    let members = [gzip(&bytes[..9000]), gzip(&bytes[9000..]), gzip(&[0; 512])].concat();
    for behind in [&b""[..], &[0; 3000], b"rubbish"] {
        is_whole(&folder.put("base.tar.gz", &[&members[..], behind].concat()));
    }
    let mut changed = [members, gzip(&[0; 512])].concat();
    let at = changed.len() - 8;
    changed[at] ^= 1;
    is_told(&folder.put("base.tar.gz", &changed), NOT_TO_ITS_END);
}

#[test]
fn zeros_without_end_behind_the_end_mark_are_not_read() {
    let mut bytes = sample();
    bytes.resize(bytes.len() + (80 << 20), 0);
    let folder = Folder::new();
    let path = folder.put("base.tar.zst", &zstd(&bytes));
    is_told(&path, "more than 64 MiB stand past its end mark");
    let mut unpacked = 0;
    TarBackup::open(&path, &std::env::temp_dir(), &mut |more| {
        unpacked += more;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(unpacked < 66 << 20, "{unpacked}");
    let mut stop = |_: u64| ControlFlow::Break(());
    let stopped = TarBackup::open(&path, &std::env::temp_dir(), &mut stop);
    assert!(stopped.err().unwrap().why.contains("interrupted"));
}

/// `pg_basebackup` packs the WAL with gzip only.
#[test]
fn a_plain_archive_beside_a_packed_one_passes_by_as_well() {
    let folder = Folder::new();
    let base = folder.put("base.tar.zst", &zstd(&sample()));
    let segment = member("000000010000000000000001", &[3; 700]);
    folder.put("pg_wal.tar", &[&segment[..], &[0; 1024]].concat());
    let (files, troubles) = passing(&base);
    assert_eq!(troubles, Vec::<String>::new());
    let segment = ("pg_wal/000000010000000000000001".to_owned(), 700);
    assert_eq!(files, [("base/5/16384".to_owned(), 20_000), segment]);

    let plain = folder.put("base.tar", &sample());
    assert!(
        PackedArchives::of(&plain).unwrap().is_none(),
        "read in place"
    );
}

#[test]
fn frames_of_every_kind_are_read() {
    let bytes = sample();
    let halves = bytes.split_at(9000);
    let folder = Folder::new();
    // `pzstd` tells the length of the next frame in one that is skipped.
    let parallel = [
        skipped(b"len1"),
        zstd(halves.0),
        skipped(b"len2"),
        zstd(halves.1),
        skipped(&[1; 5000]),
    ];
    is_whole(&folder.put("parallel.tar.zst", &parallel.concat()));
    is_whole(&folder.put("old.tar.lz4", &old_lz4(&bytes)));
    let mixed = [
        skipped(b""),
        lz4(halves.0),
        skipped(b"in the middle"),
        old_lz4(halves.1),
    ];
    is_whole(&folder.put("mixed.tar.lz4", &mixed.concat()));
    let endless = skipped(b"").repeat(2000);
    let path = folder.put("nothing.tar.zst", &[endless, zstd(&bytes)].concat());
    assert!(!is_archive(&path), "nobody packs as many frames of nothing");
}

/// `zstd --long=31`: the window is longer than what the library follows unasked.
#[test]
fn long_windows_are_followed() {
    let folder = Folder::new();
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.window_log(29).unwrap();
    // The length is not known, so that the frame asks for the whole window.
    packed.write_all(&sample()).unwrap();
    packed.flush().unwrap();
    let packed = packed.finish().unwrap();
    let refused = zstd::decode_all(packed.as_slice());
    assert!(refused.is_err(), "the window must be longer than usual");
    is_whole(&folder.put("long.tar.zst", &packed));
}

/// `tar --format=v7` writes no magic.
#[test]
fn archives_from_before_posix_are_known_by_their_checksum() {
    let mut block = build_header(b"base/5/16384", 20_000, b'0');
    block[257..265].fill(0);
    let told: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    // The magic and version are gone; the checksum's own field counts as blanks.
    let own: u32 = block[148..156].iter().map(|byte| u32::from(*byte)).sum();
    let told = told - own + 8 * 32;
    block[148..156].copy_from_slice(format!("{told:06o}\0 ").as_bytes());
    let mut bytes = block.to_vec();
    bytes.extend(&sample()[512..]);
    let folder = Folder::new();
    let path = folder.put("old.tar", &bytes);
    assert!(is_archive(&path));
    assert_eq!(in_place(&path), (Some(20_000), vec![]));
    assert!(
        !is_archive(&folder.put("16384", &bytes)),
        "its name must say so"
    );
    block[0] ^= 1;
    bytes[..512].copy_from_slice(&block);
    assert!(!is_archive(&folder.put("wrong.tar", &bytes)));
}
