//! Blind shots: random bytes, sectors and pages of random files are overwritten, nothing is
//! declared, and only the server's own reading tells whether a shot hurts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use pgclinic_cluster::{Cluster, ForkFiles, fork_place};
use pgclinic_format::BlockNo;
use pgclinic_model::document::{BlindKind, BlindTrial, Place};
use pgclinic_model::plan::{Change, Patch};
use pgclinic_surgery::{Consent, Operation, apply, undo};

use crate::drill::bench_copy::BenchCopy;
use crate::drill::crew::on_copies;
use crate::drill::judge::NewFindings;
use crate::drill::matrix::Ward;
use crate::drill::{master, oracle};
use crate::exit::Failure;

/// What a shot overwrites.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ShotKind {
    /// One to eight bytes.
    Bytes,
    /// One bit.
    Bit,
    /// 512 bytes of noise.
    Sector,
    /// 512 bytes of zeros.
    ZeroSector,
    /// A page of noise.
    Page,
    /// A page of another place.
    StrayPage,
}

const KINDS: [ShotKind; 6] = [
    ShotKind::Bytes,
    ShotKind::Bit,
    ShotKind::Sector,
    ShotKind::ZeroSector,
    ShotKind::Page,
    ShotKind::StrayPage,
];

impl ShotKind {
    fn name(self) -> &'static str {
        match self {
            ShotKind::Bytes => "bytes",
            ShotKind::Bit => "bit",
            ShotKind::Sector => "sector",
            ShotKind::ZeroSector => "zero-sector",
            ShotKind::Page => "page",
            ShotKind::StrayPage => "stray-page",
        }
    }
}

/// One shot that was chosen.
pub(crate) struct Shot {
    kind: ShotKind,
    checksums: bool,
    place: Place,
    patch: Patch,
    bytes: [u64; 2],
}

/// Chooses `count` shots of each kind, with and without checksums, by the seed.
pub(crate) fn aim(cluster: &Cluster, seed: u64, count: usize) -> Vec<Shot> {
    let files = targets(cluster);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut shots = Vec::new();
    for kind in KINDS {
        for checksums in [true, false] {
            let aimed = std::iter::repeat_with(|| shot(cluster, &files, kind, checksums, &mut rng));
            shots.extend(aimed.take(count * 20).flatten().take(count));
        }
    }
    shots
}

/// Every fork of every relation of databases that the oracle reads, with its place.
fn targets(cluster: &Cluster) -> Vec<(ForkFiles, Place)> {
    let mut targets = Vec::new();
    for home in &cluster.homes {
        let name = cluster
            .databases
            .get(&home.database)
            .and_then(|database| database.name.as_deref());
        if home.database == 0 || name.is_none_or(|name| name.starts_with("template")) {
            continue;
        }
        let catalog = cluster.catalog(home.database);
        for files in cluster
            .files(home)
            .unwrap_or_default()
            .into_iter()
            .filter(|files| files.bytes() > 0)
        {
            let relation = catalog.by_file(home.tablespace, files.filenode);
            let place = fork_place(name, relation, &files, 0);
            targets.push((files, place));
        }
    }
    targets
}

fn shot(
    cluster: &Cluster,
    files: &[(ForkFiles, Place)],
    kind: ShotKind,
    checksums: bool,
    rng: &mut fastrand::Rng,
) -> Option<Shot> {
    let page_bytes = u64::from(cluster.build.block_size);
    let (files, place) = files.get(rng.usize(..files.len()))?;
    let segment = files.segments.first()?;
    let block = rng.u64(..(segment.len / page_bytes).max(1));
    let path = files.path(0);
    let page = page_at(cluster, &path, block * page_bytes)?;
    let (start, after) = overwrite(cluster, &page, kind, files, rng)?;
    let before = page.get(start..start + after.len())?.to_vec();
    if before == after {
        return None;
    }
    let offset = block * page_bytes + start as u64;
    let end = start as u64 + after.len() as u64;
    let mut place = place.clone();
    place.block = BlockNo::try_from(block).ok();
    place.bytes = Some([start as u64, end]);
    let bytes = [offset, offset + after.len() as u64];
    let patch = Patch {
        changes: vec![Change::Bytes {
            path,
            offset,
            before,
            after,
        }],
    };
    Some(Shot {
        kind,
        checksums,
        place,
        patch,
        bytes,
    })
}

fn page_at(cluster: &Cluster, path: &str, offset: u64) -> Option<Vec<u8>> {
    let mut page = vec![0; usize::try_from(cluster.build.block_size).ok()?];
    let read = cluster.source().read_at(path, offset, &mut page).ok()?;
    (read == page.len()).then_some(page)
}

/// Where in the page, and what is written there.
fn overwrite(
    cluster: &Cluster,
    page: &[u8],
    kind: ShotKind,
    files: &ForkFiles,
    rng: &mut fastrand::Rng,
) -> Option<(usize, Vec<u8>)> {
    let mut noise = |len: usize| (0..len).map(|_| rng.u8(..)).collect::<Vec<u8>>();
    Some(match kind {
        ShotKind::Bytes => {
            let after = noise(8);
            let len = 1 + usize::from(after.first()? % 8);
            let start = rng.usize(..page.len() - len);
            (start, after.get(..len)?.to_vec())
        }
        ShotKind::Bit => {
            let start = rng.usize(..page.len());
            (start, vec![page.get(start)? ^ (1 << rng.u8(..8))])
        }
        ShotKind::Sector => (rng.usize(..page.len() / 512) * 512, noise_of(rng, 512)),
        ShotKind::ZeroSector => (rng.usize(..page.len() / 512) * 512, vec![0; 512]),
        ShotKind::Page => (0, noise(page.len())),
        ShotKind::StrayPage => {
            let pages = files.segments.first()?.len / page.len() as u64;
            let other = rng.u64(..pages.max(1));
            (
                0,
                page_at(cluster, &files.path(0), other * page.len() as u64)?,
            )
        }
    })
}

fn noise_of(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.u8(..)).collect()
}

/// Fires all shots on `threads` copies; `step` hears of each.
pub(crate) fn run(
    ward: &Ward<'_>,
    shots: &[Shot],
    threads: usize,
    stop: &AtomicBool,
    step: &(dyn Fn(&str) + Sync),
) -> Result<Vec<BlindTrial>, Failure> {
    on_copies(
        (ward.master, "copy"),
        shots,
        threads,
        stop,
        &|shot, copy| {
            let trial = fire(ward, shot, copy)?;
            step(shot.kind.name());
            Ok(trial)
        },
    )
}

fn fire(ward: &Ward<'_>, shot: &Shot, copy: &mut BenchCopy) -> Result<BlindTrial, Failure> {
    copy.refresh()?;
    if !shot.checksums {
        copy.disable_checksums()?;
    }
    let bench = copy
        .pgdata
        .parent()
        .and_then(|folder| folder.file_name())
        .unwrap_or_default();
    let journal = ward
        .master
        .scratch
        .path()
        .join("journals")
        .join(bench)
        .join("shot");
    if journal.exists() {
        std::fs::remove_dir_all(&journal)?;
    }
    let operation = |journal| Operation {
        pgdata: &copy.pgdata,
        patch: &shot.patch,
        journal,
        consent: Consent::Marked,
        what: "a blind shot",
        time: None,
        beside: &[],
        control_file: None,
    };
    apply(&operation(&journal))?;
    let verdict = NewFindings::new(master::check(&copy.pgdata, 0)?, ward.healthy);
    undo(&journal, Some(&copy.pgdata))?;
    std::fs::remove_dir_all(&journal)?;
    apply(&operation(&journal))?;
    let answer = oracle::hear(ward.master, &copy.pgdata, ward.readings).compared_with(ward.heard);
    let server = answer
        .messages
        .first()
        .or(answer.silent.first())
        .map(|words| words.lines().next().unwrap_or_default().to_owned());
    Ok(BlindTrial {
        kind: shot.kind.name().into(),
        place: shot.place.clone(),
        file_bytes: shot.bytes,
        hurts: !answer.started || answer.crashed || server.is_some(),
        server: server.or_else(|| answer.crashed.then(|| "a backend crashed".to_owned())),
        found_by: verdict.rules(),
        checksums: shot.checksums,
    })
}

/// Scores by kind, with checksums before without.
pub(crate) fn score(trials: &[BlindTrial]) -> Vec<BlindKind> {
    let mut scores: BTreeMap<(bool, String), BlindKind> = BTreeMap::new();
    for trial in trials {
        let empty = BlindKind {
            kind: trial.kind.clone(),
            checksums: trial.checksums,
            trials: 0,
            found: 0,
            hurtful: 0,
            hurtful_found: 0,
        };
        let score = scores
            .entry((!trial.checksums, trial.kind.clone()))
            .or_insert(empty);
        let found = u64::from(!trial.found_by.is_empty());
        score.trials += 1;
        score.found += found;
        score.hurtful += u64::from(trial.hurts);
        score.hurtful_found += if trial.hurts { found } else { 0 };
    }
    scores.into_values().collect()
}
