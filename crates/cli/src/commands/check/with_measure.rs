//! `check --with measure`: the figures of `pgclinic measure`, from the pages that the check reads.

use clap::ValueEnum;
use pgclinic_check::{CheckOptions, ResumableRun, check_cluster_with};
use pgclinic_cluster::Cluster;
use pgclinic_measure::{MeasureCompanion, MeasureOptions, measure_cluster};
use pgclinic_model::{CheckDocument, Progress};
use pgclinic_servers::ConnectionTarget;

use crate::exit::Failure;
use crate::server_facts;
use crate::target::OpenTarget;

/// What is done beside the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Companion {
    /// Bloat, index layout and TOAST, as `pgclinic measure` gives them
    Measure,
}

impl Companion {
    /// Figures are made of all pages of a cluster.
    ///
    /// # Errors
    /// For a target that has no relations to name.
    pub(super) fn refuse_target(self, opened: &OpenTarget) -> Result<(), Failure> {
        match opened {
            OpenTarget::Cluster(_) => Ok(()),
            OpenTarget::File(_) | OpenTarget::TruncatedArchive(_) => {
                let why = "--with measure is for a whole cluster or base backup";
                Err(Failure::new(why))
            }
        }
    }

    /// # Errors
    /// For a server whose backup passes by once.
    pub(super) fn refuse_stream(self, server: Option<&ConnectionTarget>) -> Result<(), Failure> {
        server.map_or(Ok(()), |server| {
            let why = "--with measure reads files more than once: add --level structure";
            Err(Failure::new(format!("{server}: {why}")))
        })
    }
}

fn measure_options(
    options: &CheckOptions,
    cluster: &Cluster,
    named: Option<&ConnectionTarget>,
) -> MeasureOptions {
    MeasureOptions {
        threads: options.threads,
        selection: options.selection.clone(),
        spec: options.spec.clone(),
        sample_percent: None,
        memory: options.memory.clone(),
        trial_clock: None,
        server: server_facts::of(cluster, named),
    }
}

/// Checks and measures a cluster that rests, in one read.
pub(super) fn check_and_measure(
    course: ResumableRun<'_>,
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> CheckDocument {
    let of_measure = measure_options(options, cluster, None);
    let companion = MeasureCompanion::new(cluster, &of_measure, progress);
    let mut document = check_cluster_with(course, cluster, options, progress, Some(&companion));
    document.measured = Some(Box::new(companion.finish()));
    document
}

/// Measures beside a running server. The check looks at pages again until they stand still, and
/// relations come and go meanwhile: figures have a read of their own.
pub(super) fn measure_as_well(
    document: &mut CheckDocument,
    (cluster, named): (&Cluster, Option<&ConnectionTarget>),
    options: &CheckOptions,
    progress: &dyn Progress,
) {
    let options = measure_options(options, cluster, named);
    let measured = measure_cluster(cluster, &options, progress);
    document.measured = Some(Box::new(measured));
}
