//! What is to be done on all nodes together, and how long it takes here.

use std::path::Path;
use std::time::Instant;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{
    ChecksumsAction, ChecksumsDocument, ChecksumsNode, ChecksumsOutcome, PlanStep,
};
use pgclinic_model::plan::Safety;
use pgclinic_model::shell_word;
use pgclinic_source::Source;

use super::super::shown_commands;

/// Read to learn how fast files are read here.
const SAMPLE_BYTES: u64 = 256 << 20;
const PIECE_BYTES: u64 = 1 << 20;
/// Enabling reads each page twice and writes half of it: the operating system writes pages of 4 kB.
const PASSES: f64 = 2.5;

/// How much there is to read, and how fast it is read.
pub(super) struct Pace {
    bytes: u64,
    bytes_per_second: f64,
    sample_bytes: u64,
}

impl Pace {
    /// Reads pieces that are spread evenly over all files, from the cache where they are there.
    pub(super) fn measured(cluster: &Cluster) -> Self {
        let source = cluster.source();
        let homes = cluster.homes.iter();
        let forks = homes.flat_map(|home| cluster.files(home).unwrap_or_default());
        let files: Vec<(String, u64)> = forks
            .flat_map(|fork| {
                let segments = fork.segments.iter();
                let paths = segments.map(|segment| (fork.path(segment.number), segment.len));
                paths.collect::<Vec<_>>()
            })
            .collect();
        let bytes = files.iter().map(|(_, len)| len).sum();
        let start = Instant::now();
        let sample_bytes = read_spread(source.as_ref(), &files, bytes);
        let seconds = start.elapsed().as_secs_f64().max(1e-6);
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let bytes_per_second = sample_bytes as f64 / seconds;
        Pace {
            bytes,
            bytes_per_second,
            sample_bytes,
        }
    }

    /// `about 12 min`.
    fn enabling(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "a time for people")]
        let seconds = PASSES * self.bytes as f64 / self.bytes_per_second.max(1.0);
        match seconds {
            few if few < 60.0 => format!("about {few:.0} s"),
            some if some < 7200.0 => format!("about {:.0} min", some / 60.0),
            many => format!("about {:.1} h", many / 3600.0),
        }
    }

    fn how_it_is_known(&self) -> String {
        let mebibytes = self.sample_bytes >> 20;
        let rate = self.bytes_per_second / f64::from(1 << 20);
        format!(
            "by {mebibytes} MiB that were read here at {rate:.0} MiB/s; what the operating system held in memory was read faster than a disk gives it"
        )
    }
}

/// Reads up to [`SAMPLE_BYTES`], and gives how much came.
fn read_spread(source: &dyn Source, files: &[(String, u64)], bytes: u64) -> u64 {
    let every = (bytes / (SAMPLE_BYTES / PIECE_BYTES)).max(PIECE_BYTES);
    let piece = usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX);
    let mut buffer = vec![0; piece];
    let (mut next, mut passed, mut sampled) = (0, 0, 0);
    for (path, len) in files {
        while next < passed + len {
            let read = source.read_at(path, next - passed, &mut buffer);
            sampled += read.map_or(0, |read| read as u64);
            next += every;
        }
        passed += len;
    }
    sampled
}

fn step(name: &str, why: impl Into<String>, commands: Vec<String>) -> PlanStep {
    PlanStep {
        name: name.into(),
        // All of it is advice, about other nodes or what comes next.
        safety: Safety::ShowOnly,
        why: why.into(),
        relations: Vec::new(),
        relations_omitted: 0,
        commands,
        commands_omitted: 0,
    }
}

fn is_standby(node: &&ChecksumsNode) -> bool {
    node.role == "standby"
}

/// What brings a node to what the target has.
fn switch(node: &ChecksumsNode, flag: &str) -> Vec<String> {
    let spec = match node.target.kind.as_str() {
        "server" => "ITS_PGDATA".to_owned(),
        _ => shell_word(&node.target.spec),
    };
    let command = format!("pgclinic heal checksums {spec} {flag}");
    if node
        .target
        .state
        .as_deref()
        .is_some_and(|state| state.starts_with("running"))
    {
        let stop = format!(
            "pg_ctl stop -D {spec}   # on the node of {}",
            node.target.spec
        );
        vec![stop, command]
    } else {
        vec![command]
    }
}

/// After a change, or where nodes were compared: what is left to do on them.
pub(super) fn after(document: &mut ChecksumsDocument, pgdata: &Path) {
    let flag = match (document.action, document.target.checksums) {
        (ChecksumsAction::Enable, _) | (ChecksumsAction::Compare, Some(true)) => "--enable",
        _ => "--disable",
    };
    let differing: Vec<&ChecksumsNode> = document
        .nodes
        .iter()
        .filter(is_standby)
        .filter(|node| node.matches == Some(false))
        .collect();
    let mut plan = Vec::new();
    if document.outcome == ChecksumsOutcome::Planned {
        let command = format!(
            "pgclinic heal checksums {} {flag}",
            shell_word(&document.target.spec)
        );
        plan.push(step(
            "switch-this-node",
            "what was shown is written",
            vec![command],
        ));
    }
    if !differing.is_empty() {
        let why = "nodes that differ exchange pages with wrong checksums through pg_rewind and other copies of files: stop all of them, switch each, and start the primary first; or make the standbys again from the primary";
        let commands = differing.iter().flat_map(|node| switch(node, flag));
        plan.push(step("switch-the-other-nodes", why, commands.collect()));
    }
    let spec = shown_commands::pgdata_word(pgdata);
    if document.outcome == ChecksumsOutcome::Refused {
        plan.push(step(
            "look-at-the-damage",
            "what is wrong with these pages, and what heals it",
            vec![
                format!("pgclinic check {spec} --level full"),
                shown_commands::salvage(pgdata, None),
            ],
        ));
    }
    if document.pages_written > 0 && document.outcome == ChecksumsOutcome::Done {
        plan.push(step(
            "take-a-full-backup",
            "no WAL knows the pages that were written: an incremental backup on top of an older one would give them back without their checksums",
            vec!["start the server, then take a full base backup".into()],
        ));
    }
    document.plan = plan;
}

/// Both ways to make an upgrade possible.
pub(super) fn for_upgrade(document: &mut ChecksumsDocument, pgdata: &Path, new: &Path, pace: Pace) {
    document.bytes = pace.bytes;
    let Some(node) = document.nodes.first() else {
        return;
    };
    if node.matches != Some(false) {
        return;
    }
    let old = shown_commands::pgdata_word(pgdata);
    let new = match node.target.kind.as_str() {
        "major" => "NEW_PGDATA".to_owned(),
        _ => shell_word(&new.display().to_string()),
    };
    let is_on = document.target.checksums == Some(true);
    let (flag, option) = if is_on {
        ("--disable", "--data-checksums")
    } else if node.target.major.is_some_and(|major| major >= 18) {
        ("--enable", "--no-data-checksums")
    } else {
        ("--enable", "")
    };
    let time = if is_on {
        "a moment: the control file alone is written".to_owned()
    } else {
        format!("{}, {}", pace.enabling(), pace.how_it_is_known())
    };
    let standbys = document.nodes.iter().filter(is_standby);
    let behind = standbys.filter(|node| node.target.checksums != Some(!is_on));
    let mut commands = vec![format!("pgclinic heal checksums {old} {flag}")];
    commands.extend(behind.flat_map(|node| switch(node, flag)));
    let change_old = step(
        "change-the-old-cluster",
        format!("with its server stopped, and the same on each standby; it takes {time}"),
        commands,
    );
    let again = format!("initdb {option} -D {new}").replace("  ", " ");
    let change_new = step(
        "make-the-new-cluster-again",
        "instead of it: it is empty, and made in seconds, with the locale and encoding of the old one",
        vec![again],
    );
    document.plan = vec![change_old, change_new];
    let side = |on: bool| if on { "on" } else { "off" };
    document.why = Some(format!(
        "pg_upgrade refuses: data checksums are {} in the old cluster and {} in the new one",
        side(is_on),
        side(!is_on)
    ));
}
