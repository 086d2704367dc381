//! What a plan would skip on this machine, told before it is run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::by_url;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::servers_of_arms::{Site, SiteOptions};

/// Arms and points that would be skipped, as (what, why). Servers that are here are started once and asked; nothing is
/// fetched.
pub fn skipped_here(
    experiment: &dyn Experiment,
    plan: &Plan,
    options: &SiteOptions,
    interrupted: Arc<AtomicBool>,
) -> Result<Vec<(String, String)>> {
    if let Some(given) = &options.url {
        by_url::check(experiment, given)?;
    }
    let mut site = Site::open(options.clone(), interrupted)?;
    let mut skipped: Vec<(String, String)> = Vec::new();
    for arm in &plan.matrix.arms {
        let found = match site.installation_here(arm) {
            Err(Error::Skip(why)) => {
                skipped.push((arm.name.clone(), why));
                continue;
            }
            found => found?,
        };
        let Some(installation) = found else {
            let version = arm.version.as_deref().unwrap_or("18");
            let why = format!("only if it cannot be fetched: PostgreSQL {version} is not here yet");
            skipped.push((arm.name.clone(), why));
            continue;
        };
        match site.learn(&installation) {
            Ok(()) => {}
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                skipped.push((arm.name.clone(), error.to_string()));
                continue;
            }
        }
        let Some(features) = site.known_features(&installation) else {
            continue;
        };
        let cells = plan.cells.iter();
        for cell in cells.filter(|cell| cell.block == 1 && cell.arm == arm.name && !cell.is_control)
        {
            let needs = experiment.needs(cell, arm);
            let missing = needs
                .iter()
                .find_map(|need| need.missing(features, &installation));
            let Some(why) = missing else { continue };
            let at: Vec<String> = cell
                .point
                .iter()
                .map(|(axis, value)| format!("{axis} {value}"))
                .collect();
            skipped.push((
                format!("{} {}", arm.name, at.join(", "))
                    .trim_end()
                    .to_owned(),
                why,
            ));
        }
    }
    Ok(joined(skipped, plan))
}

/// An arm that is skipped at every point for one reason is one line.
fn joined(skipped: Vec<(String, String)>, plan: &Plan) -> Vec<(String, String)> {
    let points = plan
        .matrix
        .axes
        .iter()
        .map(|axis| axis.values.len())
        .product::<usize>();
    let mut lines: Vec<(String, String)> = Vec::new();
    for arm in &plan.matrix.arms {
        let own: Vec<&(String, String)> = skipped
            .iter()
            .filter(|(what, _)| what.split(' ').next() == Some(arm.name.as_str()))
            .collect();
        let alike = own
            .windows(2)
            .all(|pair| matches!(pair, [one, next] if one.1 == next.1));
        match own.first() {
            Some((_, why)) if alike && own.len() == points => {
                lines.push((arm.name.clone(), why.clone()))
            }
            _ => lines.extend(own.into_iter().cloned()),
        }
    }
    lines
}
