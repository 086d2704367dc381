//! `watch --measure RATE`: `pgclinic measure` of a server's files, or of those of a standby or a
//! backup, so that the server pays nothing for it.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::path::PathBuf;

use pgclinic_model::document::{Figure, MEASURE_SCHEMA, MeasureDocument, MeasuredRelation};
use pgclinic_watch::{FileSource, LargeObjects, MeasuredFigures, MeasuredStatus, ServerOnDisk};

use super::background::Background;
use super::own_files::{directory_of, has_number_of, written_at};
use super::repeated::{Extent, Job, Outcome, Repeated, Schedule, now};

/// Relations that are listed of each figure.
const WORST_MAX: usize = 20;
/// A small index is never dense, and costs nothing.
const INDEX_BYTES_MIN: u64 = 1 << 20;

/// As the figures of columns are named.
const TOAST_METHODS: [&str; 6] = [
    "plain",
    "pglz",
    "lz4",
    "external",
    "external_pglz",
    "external_lz4",
];

struct Measuring {
    files: Option<PathBuf>,
    pgdata: Option<PathBuf>,
    runs: Repeated<MeasuredFigures>,
    /// How old the files of the last one are, with when it ended.
    files_at: Option<(f64, Option<f64>)>,
}

/// The measurements of one server, to be asked at each sample.
pub(super) fn source(
    rate: NonZeroU64,
    schedule: Schedule,
    files: Option<PathBuf>,
    pgdata: Option<PathBuf>,
) -> FileSource<MeasuredStatus> {
    let rate = format!("{rate}B/s");
    let words = [
        "measure", "--jobs", "1", "--memory", "64MiB", "--rate", &rate,
    ];
    let job = Job {
        name: "measure",
        words: words.into_iter().map(str::to_owned).collect(),
        resumes: false,
        read: found,
        extent: |_, _| Extent::default(),
    };
    let mut own = Measuring {
        files,
        pgdata,
        runs: Repeated::new(schedule, job),
        files_at: None,
    };
    FileSource::new(move |server| own.status(server))
}

impl Measuring {
    fn status(&mut self, server: &ServerOnDisk) -> MeasuredStatus {
        let stopped = self.go_on(server).err();
        let files_at = self.files_at();
        let last = self.runs.last();
        MeasuredStatus {
            clock: now(),
            asked_since: self.runs.asked_since(),
            ended_at: last.map(|own| own.ended_at),
            files_at,
            figures: last.map(|own| own.found.clone()).unwrap_or_default(),
            stopped,
        }
    }

    /// Asked once for each run: the files may be others at the next.
    fn files_at(&mut self) -> Option<f64> {
        let (files, ended_at) = (self.files.as_ref()?, self.runs.last()?.ended_at);
        if self.files_at.is_none_or(|(of, _)| of < ended_at) {
            self.files_at = Some((ended_at, written_at(files)));
        }
        self.files_at.and_then(|(_, at)| at)
    }

    fn go_on(&mut self, server: &ServerOnDisk) -> Result<(), String> {
        let directory = match &self.files {
            // An archive is recognized by what is measured in it.
            Some(files) if !files.is_dir() => files.clone(),
            Some(files) => {
                has_number_of(files, server)?;
                files.clone()
            }
            None => directory_of(server, self.pgdata.as_deref())?,
        };
        let identifier = server.system_identifier.as_deref().unwrap_or_default();
        self.runs.go_on(&directory, identifier)?;
        let measured = self
            .runs
            .last()
            .and_then(|own| own.found.system_identifier.as_deref());
        match measured {
            Some(other) if other != identifier => Err(format!(
                "{} is of another cluster, {other} and not {identifier}",
                directory.display()
            )),
            _ => Ok(()),
        }
    }
}

fn found(work: &Background) -> Outcome<MeasuredFigures> {
    match work.kept::<MeasureDocument>("run.json") {
        // It begins again: a measurement has no state.
        Some(document) if document.interrupted => Outcome::Stopped,
        Some(document) if document.schema == MEASURE_SCHEMA => {
            Outcome::Complete(of_document(&document))
        }
        _ => Outcome::Failed,
    }
}

fn of_document(document: &MeasureDocument) -> MeasuredFigures {
    let relations = || document.relations.iter();
    let count = |own: &MeasuredRelation, name: &str| figure(own, name).map(pgclinic_model::whole);
    let worst = |name: &str| {
        let all = relations().filter_map(|own| Some((name_of(own), count(own, name)?)));
        let mut all: Vec<(String, u64)> = all.filter(|(_, own)| *own > 0).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(WORST_MAX);
        all
    };
    let dense = relations().filter(|own| own.bytes >= INDEX_BYTES_MIN);
    let dense =
        dense.filter_map(|own| Some((name_of(own), figure(own, "avg_leaf_density")? / 100.0)));
    let mut dense: Vec<(String, f64)> = dense.collect();
    dense.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    dense.truncate(WORST_MAX);
    let of_system = relations().filter(|own| own.schema.as_deref() == Some("pg_catalog"));
    let catalogs = of_system.filter_map(|own| {
        let dead = count(own, "dead_tuple_len")?;
        Some((name_of(own), own.bytes, dead))
    });
    let mut catalogs: Vec<(String, u64, u64)> = catalogs.collect();
    catalogs.sort_by_key(|(_, bytes, _)| Reverse(*bytes));
    catalogs.truncate(WORST_MAX);
    MeasuredFigures {
        system_identifier: document.target.system_identifier.clone(),
        dead_bytes: worst("dead_tuple_len"),
        free_bytes: worst("free_space"),
        index_density: dense,
        catalogs,
        toast_bytes: toast_bytes(document),
        large_objects: large_objects(document),
    }
}

/// Of all columns together, by method; methods of which there is nothing are left out.
fn toast_bytes(document: &MeasureDocument) -> Vec<(String, u64)> {
    let columns = document.relations.iter().flat_map(|own| &own.columns);
    let sections: Vec<_> = columns
        .filter_map(|own| own.sections.get("toast"))
        .collect();
    let sum = |name: &str| {
        let own = sections.iter().filter_map(|own| own.get(name)?.as_ref());
        own.filter_map(number)
            .map(pgclinic_model::whole)
            .sum::<u64>()
    };
    let methods = TOAST_METHODS.iter();
    let all = methods.map(|method| ((*method).to_owned(), sum(&format!("{method}_bytes"))));
    all.filter(|(_, bytes)| *bytes > 0).collect()
}

/// Of the databases that have some, the largest first.
fn large_objects(document: &MeasureDocument) -> Vec<LargeObjects> {
    let databases = document.databases.iter().filter_map(|own| {
        let section = own.sections.get("large_objects")?;
        let count = |name: &str| {
            let own = section.get(name).and_then(Option::as_ref).and_then(number);
            own.map_or(0, pgclinic_model::whole)
        };
        Some(LargeObjects {
            database: own.database.clone(),
            count: count("count"),
            bytes: count("bytes"),
            orphans: count("orphan_count"),
            orphan_bytes: count("orphan_bytes"),
        })
    });
    let mut databases: Vec<LargeObjects> = databases.filter(|own| own.count > 0).collect();
    databases.sort_by_key(|own| Reverse(own.bytes));
    databases.truncate(WORST_MAX);
    databases
}

fn number(figure: &Figure) -> Option<f64> {
    match figure {
        Figure::Count(own) => Some(*own as f64),
        Figure::Real(own) => Some(*own),
        _ => None,
    }
}

/// Of whatever section has it.
fn figure(relation: &MeasuredRelation, name: &str) -> Option<f64> {
    let mut sections = relation.sections.values();
    number(sections.find_map(|section| section.get(name))?.as_ref()?)
}

fn name_of(relation: &MeasuredRelation) -> String {
    let names = [&relation.database, &relation.schema, &relation.relation];
    let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
    if relation.relation.is_none() {
        return relation.path.clone();
    }
    names.join(".")
}
