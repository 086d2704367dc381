//! A small made-up cluster in memory, for tests of checks of clusters.

use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_format::build::{self, put_u32};
use pgclinic_format::relation_map;
use pgclinic_source::Memory;

use crate::catalogs::relation_map_inconsistent::NEEDED_IN_GLOBAL;
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// A cluster of PostgreSQL 18 without databases.
pub(crate) struct ClusterTrial {
    cluster: Cluster,
}

impl ClusterTrial {
    /// With this control file, or without one.
    pub(crate) fn with_control_file(bytes: Option<Vec<u8>>) -> Self {
        ClusterTrial::new(bytes, Some(sound_map()))
    }

    /// With this map in `global`, or without one.
    pub(crate) fn with_shared_map(bytes: Option<Vec<u8>>) -> Self {
        ClusterTrial::new(Some(sound_control_file()), bytes)
    }

    fn new(control: Option<Vec<u8>>, map: Option<Vec<u8>>) -> Self {
        let source = Memory::new("trial")
            .with("PG_VERSION", "18\n")
            .with("base/1/PG_VERSION", "18\n");
        for (path, bytes) in [
            ("global/pg_control", control),
            ("global/pg_filenode.map", map),
        ] {
            if let Some(bytes) = bytes {
                source.insert(path, bytes);
            }
        }
        for filenode in NEEDED_IN_GLOBAL {
            source.insert(format!("global/{filenode}"), Vec::new());
        }
        let cluster = Cluster::open(Arc::new(source)).expect("a cluster in memory");
        ClusterTrial { cluster }
    }

    /// What the check says.
    pub(crate) fn drafts(&self, check: &dyn ClusterCheck) -> Vec<Draft> {
        let mut out = Findings::default();
        check.check(&self.cluster, &mut out);
        out.take_drafts()
    }
}

/// The control file of a cluster of 18 that was shut down in good order.
pub(crate) fn sound_control_file() -> Vec<u8> {
    build::sound_control_file(8192)
}

/// A map of 18 for `global`.
pub(crate) fn sound_map() -> Vec<u8> {
    let mut bytes = vec![0; 524];
    put_u32(&mut bytes, 0, relation_map::MAGIC);
    put_u32(
        &mut bytes,
        4,
        u32::try_from(NEEDED_IN_GLOBAL.len()).expect("a short list"),
    );
    for (index, catalog) in NEEDED_IN_GLOBAL.iter().enumerate() {
        put_u32(&mut bytes, 8 + index * 8, *catalog);
        put_u32(&mut bytes, 12 + index * 8, *catalog);
    }
    assert!(relation_map::seal(&mut bytes), "a map of 18");
    bytes
}
