//! Every source keeps the same promises.

use std::fs;
use std::io::Write;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgclinic_format::incremental;
use pgclinic_format::tar::build_header;
use pgclinic_source::conformance::{Expected, check, check_shrinking, sample_files, sample_tree};
use pgclinic_source::{
    BackupChain, ChainShape, Clock, DataDirectory, Limit, Memory, Overlay, OverlayPatch,
    SingleFile, Source, SourceSpec, TarBackup,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Time that passes only by sleeping.
#[derive(Default)]
struct StillClock(Mutex<Duration>);

impl Clock for StillClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

fn on_disk(files: &Expected) -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, content)?;
    }
    Ok(folder)
}

fn in_memory(files: &Expected) -> Memory {
    files
        .iter()
        .fold(Memory::new("test"), |memory, (path, content)| {
            memory.with(path, content.clone())
        })
}

fn cut(path: &Path) {
    fs::File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(100))
        .unwrap();
}

/// The spec survives JSON and builds a source that keeps the promises as well.
fn check_spec(source: &dyn Source, expected: &Expected) -> Outcome {
    let text = serde_json::to_string(source.spec())?;
    let back: SourceSpec = serde_json::from_str(&text)?;
    assert_eq!(&back, source.spec());
    let clock: Arc<dyn Clock> = Arc::new(StillClock::default());
    let rebuilt = back.open(&clock)?;
    assert_eq!(rebuilt.spec(), source.spec());
    check(&*rebuilt, expected);
    Ok(())
}

#[test]
fn data_directory_beside_a_server() -> Outcome {
    let files = sample_tree();
    let folder = on_disk(&files)?;
    let source = DataDirectory::open_beside_a_server(folder.path())?;
    check(&source, &files);
    check_shrinking(&source, "base/5/16384", &|| {
        cut(&folder.path().join("base/5/16384"))
    });
    Ok(())
}

#[test]
fn data_directory() -> Outcome {
    let files = sample_tree();
    let folder = on_disk(&files)?;
    let source = DataDirectory::open(folder.path())?;
    check(&source, &files);
    check_spec(&source, &files)?;
    check_shrinking(&source, "base/5/16384", &|| {
        cut(&folder.path().join("base/5/16384"))
    });
    Ok(())
}

#[test]
fn single_file() -> Outcome {
    let files = sample_files();
    let folder = on_disk(&files)?;
    for stranger in ["163840", "16385", "16384.x"] {
        fs::write(folder.path().join(stranger), "not shown")?;
    }
    let source = SingleFile::open(&folder.path().join("16384"))?;
    check(&source, &files);
    check_spec(&source, &files)?;
    check_shrinking(&source, "16384", &|| cut(&folder.path().join("16384")));
    Ok(())
}

#[test]
fn memory() -> Outcome {
    let files = sample_tree();
    let source = in_memory(&files);
    check(&source, &files);
    check_shrinking(&source, "16384", &|| source.insert("16384", vec![0; 100]));
    let clock: Arc<dyn Clock> = Arc::new(StillClock::default());
    assert!(
        source.spec().open(&clock).is_err(),
        "its bytes cannot be had from the spec"
    );
    Ok(())
}

/// A tree unlike the sample, and what makes it the sample.
fn wounded(files: &Expected) -> (Expected, Vec<OverlayPatch>) {
    let mut under = files.clone();
    let mut patches = Vec::new();
    if let Some(bytes) = under
        .get_mut("base/5/16384")
        .and_then(|file| file.get_mut(8000..9000))
    {
        let (path, was) = ("base/5/16384".to_owned(), bytes.to_vec());
        bytes.fill(0);
        patches.push(OverlayPatch::Bytes {
            path,
            offset: 8000,
            bytes: was,
        });
    }
    under
        .entry("16384".to_owned())
        .or_default()
        .extend([1; 5000]);
    patches.push(OverlayPatch::Cut {
        path: "16384".to_owned(),
        len: 100_001,
    });
    under.insert("base/5/99999".to_owned(), vec![1; 10]);
    patches.push(OverlayPatch::Remove {
        path: "base/5/99999".to_owned(),
    });
    for created in ["global/pg_control", "16384.1"] {
        let bytes = under.remove(created).unwrap_or_default();
        patches.push(OverlayPatch::Bytes {
            path: created.to_owned(),
            offset: 0,
            bytes,
        });
    }
    (under, patches)
}

#[test]
fn overlay() -> Outcome {
    let files = sample_tree();
    let (under, patches) = wounded(&files);
    let folder = on_disk(&under)?;
    let source = Overlay::new(
        Arc::new(DataDirectory::open(folder.path())?),
        patches.clone(),
    )?;
    check(&source, &files);
    check_spec(&source, &files)?;

    let below = Arc::new(in_memory(&under));
    let source = Overlay::new(below.clone(), patches)?;
    check(&source, &files);
    check_shrinking(&source, "base/5/16384", &|| {
        below.insert("base/5/16384", vec![0; 100])
    });
    Ok(())
}

#[test]
fn limit() -> Outcome {
    let files = sample_tree();
    let folder = on_disk(&files)?;
    let rate = NonZeroU64::new(1_000_000).ok_or("zero")?;
    let source = Limit::new(
        Arc::new(DataDirectory::open(folder.path())?),
        rate,
        Arc::new(StillClock::default()),
    );
    check(&source, &files);
    check_spec(&source, &files)?;
    check_shrinking(&source, "16384", &|| cut(&folder.path().join("16384")));
    Ok(())
}

#[test]
fn a_limit_holds_over_time() -> Outcome {
    let clock = Arc::new(StillClock::default());
    let under = Arc::new(Memory::new("test").with("f", vec![0; 500_000]));
    let source = Limit::new(
        under,
        NonZeroU64::new(1_000_000).ok_or("zero")?,
        clock.clone(),
    );
    for _ in 0..10 {
        source.read_at("f", 0, &mut [0; 1_000_000])?;
    }
    assert_eq!(
        clock.now(),
        Duration::from_secs(5),
        "only the bytes that came are counted, not those asked for"
    );
    Ok(())
}

/// Members of an archive, one after the other, and its end mark.
fn archive(files: &Expected, below: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, content) in files {
        let Some(name) = path.strip_prefix(below) else {
            continue;
        };
        bytes.extend(build_header(name.as_bytes(), content.len() as u64, b'0'));
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes)?;
    packed.finish()
}

fn lz4(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = lz4_flex::frame::FrameEncoder::new(Vec::new());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn tar_backup() -> Outcome {
    let files = sample_tree();
    let plain = archive(&files, "");
    let forms = [
        ("base.tar", plain.clone()),
        ("base.tar.gz", gzip(&plain)?),
        ("base.tar.lz4", lz4(&plain)?),
        ("base.tar.zst", zstd::encode_all(plain.as_slice(), 1)?),
    ];
    for (name, bytes) in forms {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(name);
        fs::write(&path, bytes)?;
        let source = TarBackup::open(&path, &std::env::temp_dir(), &mut go_on)?;
        assert_eq!(source.troubles(), &[] as &[String], "{name}");
        check(&source, &files);
        check_spec(&source, &files)?;
    }
    Ok(())
}

#[test]
fn archives_beside_the_base_are_part_of_it() -> Outcome {
    let mut files = sample_tree();
    let version = "pg_tblspc/16385/PG_18_202506291/5/1";
    files.insert(version.to_owned(), vec![7; 9000]);
    files.insert("pg_wal/000000010000000000000002".to_owned(), vec![9; 1024]);
    files.insert("backup_manifest".to_owned(), b"{}\n".to_vec());
    let folder = tempfile::tempdir()?;
    let beside = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes);
    beside("16385.tar.gz", &gzip(&archive(&files, "pg_tblspc/16385/"))?)?;
    beside("pg_wal.tar", &archive(&files, "pg_wal/"))?;
    beside("backup_manifest", b"{}\n")?;
    beside("notes.txt", b"of no interest")?;
    let in_base = |path: &&String| {
        path.starts_with("base/")
            || path.starts_with("16384")
            || path.starts_with("global/")
            || *path == "PG_VERSION"
    };
    let base: Expected = files
        .keys()
        .filter(in_base)
        .map(|path| (path.clone(), files[path].clone()))
        .collect();
    let mut bytes = build_header(b"pg_tblspc/16385", 0, b'2').to_vec();
    bytes.extend(build_header(b"./pg_wal/", 0, b'5'));
    bytes.extend(archive(&base, ""));
    // Packed, it shares what is kept of it with the other packed one.
    beside("base.tar", &bytes)?;
    beside("base.tar.gz", &gzip(&bytes)?)?;
    for name in ["base.tar", "base.tar.gz"] {
        let path = folder.path().join(name);
        let source = TarBackup::open(&path, &std::env::temp_dir(), &mut go_on)?;
        assert_eq!(source.troubles(), &[] as &[String], "{name}");
        check(&source, &files);
    }
    Ok(())
}

const SHAPE: ChainShape = ChainShape {
    block_bytes: 16,
    segment_blocks: 8192,
};

/// A label of a backup, which in a chain says more.
const LABEL: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\nCHECKPOINT LOCATION: 0/2000060\n";

/// Parts of a file: those of these blocks, right or wrong.
fn parts(content: &[u8], truncation: u32, blocks: impl Iterator<Item = (u32, bool)>) -> Vec<u8> {
    let all: Vec<&[u8]> = content.chunks(16).collect();
    let wrong = [0xEE; 16];
    let blocks: Vec<(u32, &[u8])> = blocks
        .map(|(block, right)| {
            (
                block,
                if right {
                    all[block as usize]
                } else {
                    &wrong[..]
                },
            )
        })
        .collect();
    incremental::build(truncation, &blocks, SHAPE.block_bytes)
}

/// A full backup and two that build on it: of each three blocks, each link has one newest.
fn three_links(files: &Expected) -> [Expected; 3] {
    let mut links: [Expected; 3] = Default::default();
    for (path, content) in files {
        let Some((folder, name)) = path.rsplit_once('/').filter(|_| path.starts_with("base/"))
        else {
            links[0].insert(path.clone(), b"replaced".to_vec());
            links[2].insert(path.clone(), content.clone());
            continue;
        };
        let blocks = u32::try_from(content.len() / 16).unwrap_or(0);
        // The file was shorter at first; what lies behind is in the newest parts.
        let full = blocks.saturating_sub(20);
        let mut whole: Vec<u8> = Vec::new();
        for (block, bytes) in (0..full).zip(content.chunks(16)) {
            whole.extend(if block % 3 == 0 {
                bytes
            } else {
                &[0xEE; 16][..]
            });
        }
        links[0].insert(path.clone(), whole);
        let part = format!("{folder}/INCREMENTAL.{name}");
        let older = (0..full).filter(|block| block % 3 > 0);
        let older = older.map(|block| (block, block % 3 == 1));
        links[1].insert(part.clone(), parts(content, full, older));
        let newer = (0..blocks).filter(|block| block % 3 == 2 || *block >= full);
        let newer = newer.map(|block| (block, true));
        links[2].insert(part, parts(content, full, newer));
    }
    links[0].insert("base/5/dropped".into(), vec![7; 160]);
    links[1].insert(
        "base/5/INCREMENTAL.dropped".into(),
        incremental::build(10, &[], 16),
    );
    links[2].insert("backup_manifest".into(), b"{}".to_vec());
    let follows = "INCREMENTAL FROM LSN: 0/1000028\nINCREMENTAL FROM TLI: 1\n";
    links[2].insert(
        "backup_label".into(),
        format!("{LABEL}{follows}").into_bytes(),
    );
    links
}

#[test]
fn backup_chain() -> Outcome {
    let mut files = sample_tree();
    files.insert("backup_label".into(), LABEL.as_bytes().to_vec());
    let folders = three_links(&files).map(|link| on_disk(&link));
    let mut links: Vec<Arc<dyn Source>> = Vec::new();
    for folder in &folders {
        let folder = folder.as_ref().map_err(ToString::to_string)?;
        links.push(Arc::new(DataDirectory::open(folder.path())?));
    }
    let source = BackupChain::new(links, SHAPE)?;
    check(&source, &files);
    check_spec(&source, &files)?;
    let hidden = [
        "backup_manifest",
        "base/5/INCREMENTAL.16384",
        "base/5/dropped",
    ];
    for path in hidden {
        assert!(source.len(path).is_err(), "{path}");
    }
    let last = folders[2].as_ref().map_err(ToString::to_string)?;
    check_shrinking(&source, "16384", &|| cut(&last.path().join("16384")));
    Ok(())
}

/// Two links in memory; the newer one has this as the parts of `base/5/1`.
fn chain_with(parts: Option<Vec<u8>>, whole: Option<Vec<u8>>) -> BackupChain {
    let older = Memory::new("older").with("PG_VERSION", b"18\n");
    let newer = Memory::new("newer").with("PG_VERSION", b"18\n");
    if let Some(whole) = whole {
        older.insert("base/5/1", whole);
    }
    if let Some(parts) = parts {
        newer.insert("base/5/INCREMENTAL.1", parts);
    }
    let links: Vec<Arc<dyn Source>> = vec![Arc::new(older), Arc::new(newer)];
    BackupChain::new(links, SHAPE).unwrap()
}

#[test]
fn lying_parts_are_errors_of_their_file_only() {
    let block: &[u8] = &[1; 16];
    let sound = incremental::build(2, &[(1, block)], 16);
    let changed = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        Some(bytes)
    };
    let whole = || Some(vec![9; 48]);
    let read = |chain: &BackupChain| {
        let mut bytes = [0; 64];
        let count = chain.read_at("base/5/1", 0, &mut bytes);
        count
            .map(|count| bytes[..count].to_vec())
            .map_err(|error| error.why)
    };
    let resolved = [[9; 16], [1; 16]].concat();
    assert_eq!(
        read(&chain_with(Some(sound.clone()), whole())),
        Ok(resolved),
        "truncated to two blocks"
    );
    let short = chain_with(
        Some(incremental::build(3, &[(2, block)], 16)),
        Some(vec![9; 16]),
    );
    let resolved = [[9; 16], [0; 16], [1; 16]].concat();
    assert_eq!(read(&short), Ok(resolved), "what no link has is zeros");

    let lies = [
        (changed(0, 0), "magic"),
        (changed(7, 0x7f), "more than a segment has"),
        (changed(11, 0x7f), "more than one has"),
        (changed(13, 0xff), "past the segment's end"),
        (Some(sound[..14].to_vec()), "ends"),
    ];
    for (parts, why) in lies {
        let chain = chain_with(parts, whole());
        let told = read(&chain).unwrap_err();
        assert!(told.contains(why), "{told}");
        let listed = chain.list("base/5").unwrap();
        assert_eq!(listed[0].name, "1", "it is not forgotten");
        assert!(listed[0].len > 0, "and somebody reads it");
    }
    let cut = chain_with(Some(sound[..20].to_vec()), whole());
    assert_eq!(
        cut.read_at("base/5/1", 0, &mut [0; 16]),
        Ok(16),
        "the other block is there"
    );
    assert!(cut.read_at("base/5/1", 16, &mut [0; 16]).is_err());
    let told = read(&chain_with(Some(sound.clone()), None)).unwrap_err();
    assert!(told.contains("has no part of the file"), "{told}");
}
