//! WAL that a server needs when it starts, is missing in `pg_wal`, and lies in an archive.

use std::path::Path;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{Evidence, FoundSegments, missing_segments};
use pgclinic_model::document::{CureRequest, HealDocument, HealEvidence, NotChecked};
use pgclinic_surgery::cures::{ProvenByBlock, ProvenPage, ProvenPages, RESTORE_SEGMENT};

use super::evidence::Search;
use super::{Arguments, plan_of};
use crate::env::Env;
use crate::exit::Failure;

/// A plan that puts missing segments in their place, and nothing else: what a page should hold is
/// known once recovery has read them.
pub(super) fn planned(
    arguments: &Arguments,
    pgdata: &Path,
    cluster: &Cluster,
    world: &mut Env<'_>,
) -> Result<Option<(HealDocument, ProvenPages)>, Failure> {
    let is_asked = arguments.evidence.is_given()
        && !arguments.pages
        && arguments.apply.is_none()
        && arguments.cure.named().is_none()
        && arguments.at.is_empty();
    if !is_asked {
        return Ok(None);
    }
    let named = arguments.evidence.named()?;
    let search = Search {
        arguments,
        pgdata,
        cluster,
        evidence: &named,
        scratch: false,
        world,
    };
    let found = match search.segments()? {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(why) => {
            world.say(&format!("missing WAL is not put in its place: {why}"));
            return Ok(None);
        }
    };
    let proven = proven_segments(&found);
    let requests: Vec<CureRequest> = proven.pages.keys().map(|(path, _)| request(path)).collect();
    let document = plan_of(cluster, pgdata, &requests, &proven)?;
    let comes_first = if found.label_is_lost {
        "this is a base backup without its backup_label, which heal makes when that WAL is there: run heal again, and start no server before"
    } else {
        "the server's recovery comes first: start it, stop it, and check again"
    };
    Ok(Some((with_rest(document, named, comes_first), proven)))
}

fn with_rest(
    mut document: HealDocument,
    evidence: HealEvidence,
    comes_first: &str,
) -> HealDocument {
    document.evidence = Some(evidence);
    document.not_checked.push(NotChecked {
        what: "tables, indexes and catalogs".into(),
        why: comes_first.into(),
        inherent: false,
    });
    document
}

fn request(path: &str) -> CureRequest {
    CureRequest {
        cure: RESTORE_SEGMENT.into(),
        path: path.to_owned(),
        block: 0,
        item: None,
        column: None,
    }
}

fn proven_segments(found: &FoundSegments) -> ProvenPages {
    let read = format!(
        "records hang together from {} to {}, and the checkpoint of the control file is among them",
        found.from, found.end
    );
    let segments = found.segments.iter().map(|segment| {
        let page = ProvenPage {
            bytes: segment.bytes.clone(),
            evidence: vec![segment.found_in.clone(), read.clone()],
            is_unverified: !found.is_whole,
        };
        ((segment.path.clone(), 0), page)
    });
    ProvenPages::from(segments.collect::<ProvenByBlock>())
}

impl Search<'_, '_> {
    fn segments(&self) -> Result<Result<Option<FoundSegments>, String>, Failure> {
        let copies = self.copies()?;
        let evidence: Evidence<'_> = self.all_evidence(&copies)?;
        Ok(missing_segments(self.cluster, &evidence))
    }

    /// The segments that a saved plan puts in place, found again.
    pub(super) fn segments_again(&self, requests: &[CureRequest]) -> Result<ProvenPages, Failure> {
        if requests.iter().all(|own| own.cure != RESTORE_SEGMENT) {
            return Ok(ProvenPages::default());
        }
        let found = self.segments()?.map_err(Failure::new)?;
        Ok(found.map_or_else(ProvenPages::default, |found| proven_segments(&found)))
    }
}
