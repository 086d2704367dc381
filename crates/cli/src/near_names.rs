//! *Did you mean*, where a selection fits nothing: names of the cluster that are near, and the
//! relation that is there while its file is not.

use std::collections::BTreeSet;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Relation};
use pgclinic_explain::server_messages::closest;
use pgclinic_format::Fork;
use pgclinic_model::{Glob, plural};
use pgclinic_surgery::{Injury, injuries, injury_named};

use crate::args::SelectionArgs;
use crate::exit::Failure;

/// Databases that a sentence names.
const DATABASES_SHOWN: usize = 8;

/// `did you mean public.orders? `, or nothing.
pub(crate) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = closest(name, known);
    if near.is_empty() {
        return String::new();
    }
    format!("did you mean {}? ", near.join(" or "))
}

/// The injury of this name, or the names that are near.
pub(crate) fn injury(name: &str) -> Result<&'static Injury, Failure> {
    injury_named(name).map_err(|error| {
        let near = meant(name, injuries().iter().map(|own| own.name));
        Failure::new(match near.trim_end() {
            "" => format!("{error}: pgclinic injure --list shows all"),
            near => format!("{error} ({near})"),
        })
    })
}

/// What helps somebody whose names fit no file of the cluster, in brackets; or nothing.
pub(crate) fn why_nothing(cluster: &Cluster, databases: &[String], relations: &[String]) -> String {
    match hint(cluster, databases, relations).trim_end() {
        "" => String::new(),
        hint => format!(" ({hint})"),
    }
}

/// That a selection fits nothing of a target, with the names that are near.
pub(crate) fn nothing_selected(
    selection: &SelectionArgs,
    spec: &str,
    clusters: &[&Cluster],
) -> Failure {
    let SelectionArgs {
        database, relation, ..
    } = selection;
    let asked: Vec<&str> = database
        .iter()
        .chain(relation)
        .map(String::as_str)
        .collect();
    let asked = match asked.as_slice() {
        [] => "the selection".to_owned(),
        names => format!("{:?}", names.join(" ")),
    };
    let mut near = clusters
        .iter()
        .map(|cluster| why_nothing(cluster, database, relation));
    let near = near.find(|why| !why.is_empty()).unwrap_or_default();
    Failure::new(format!(
        "{asked} matches nothing in {spec}{near}. Relations are written schema.name, * and ? are wild"
    ))
}

fn hint(cluster: &Cluster, databases: &[String], relations: &[String]) -> String {
    let names: BTreeSet<&str> = cluster
        .databases
        .values()
        .filter_map(|own| own.name.as_deref())
        .collect();
    let unknown = databases.iter().find(|asked| {
        let asked = Glob::new(asked.as_str());
        !names.iter().any(|name| asked.matches(name))
    });
    if let Some(asked) = unknown {
        return match meant(asked, names.iter().copied()) {
            near if near.is_empty() => databases_there(&names),
            near => near,
        };
    }
    let known: Vec<Catalog> = cluster
        .databases
        .keys()
        .map(|own| cluster.catalog(*own))
        .collect();
    let all = || known.iter().flat_map(|catalog| catalog.relations.values());
    for asked in relations {
        if let Some(relation) = all().find(|own| is_named(own, asked)) {
            let name = relation.qualified_name();
            let file = relation.filenode;
            return match blocks_of(cluster, relation) {
                0 => format!("{name} is in pg_class, and its file {file} is missing or empty"),
                blocks => format!("{name} has {}", plural(blocks, "block")),
            };
        }
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    for relation in all() {
        names.insert(relation.qualified_name());
    }
    let hints = relations.iter().map(|asked| match asked.split_once('.') {
        Some(_) => meant(asked, names.iter().map(String::as_str)),
        None => {
            let bare = names.iter().filter_map(|own| Some(own.split_once('.')?.1));
            meant(asked, bare)
        }
    });
    hints.collect()
}

/// Of the main fork.
fn blocks_of(cluster: &Cluster, relation: &Relation) -> u64 {
    let homes = cluster.homes.iter();
    let files = homes.filter_map(|home| cluster.files(home).ok()).flatten();
    let own = |files: &ForkFiles| {
        files.filenode == relation.filenode
            && files.home.tablespace == relation.tablespace
            && files.fork == Fork::Main
            && files.temporary.is_none()
    };
    let bytes = files.filter(own).map(|files| files.bytes()).max();
    bytes.unwrap_or(0) / u64::from(cluster.build.block_size).max(1)
}

/// The databases by name, as far as a sentence has room for them.
fn databases_there(names: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = names.iter().copied().take(DATABASES_SHOWN).collect();
    let more = names.len() - shown.len();
    let more = (more > 0).then(|| format!(" and {more} more"));
    if shown.is_empty() {
        return String::new();
    }
    let shown = shown.join(", ");
    format!("its databases are {shown}{}", more.unwrap_or_default())
}

fn is_named(relation: &Relation, asked: &str) -> bool {
    let pattern = Glob::new(asked);
    pattern.matches(&relation.qualified_name())
        || (!asked.contains('.') && pattern.matches(&relation.name))
}
