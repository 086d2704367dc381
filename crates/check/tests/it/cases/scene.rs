//! A seed, its indexes, and changes laid over its files.

use std::path::PathBuf;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_format::build::{put_u16, seal_page};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::{CheckDocument, Finding, Glob, Level, Selection, Severity};
use pgclinic_servers::Checksums;
use pgclinic_source::{Overlay, OverlayPatch, read_all};
use pgclinic_testkit::{checked_only, directory, open, seed, server};

pub(crate) const PAGE: usize = 8192;

/// An index of the seed's users.
pub(crate) struct Index {
    pub(crate) oid: Oid,
    pub(crate) name: String,
    pub(crate) method: AccessMethod,
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Scene {
    pub(crate) pgdata: PathBuf,
    pub(crate) cluster: Cluster,
    pub(crate) database: Oid,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let pgdata = seed(&server(18), Checksums::On).pgdata;
        let cluster = open(&pgdata);
        let mut databases = cluster.databases.values();
        let clinic = databases.find(|one| one.name.as_deref() == Some("clinic"));
        let database = clinic.expect("the seed's database").oid;
        Scene {
            pgdata,
            cluster,
            database,
        }
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        read_all(self.cluster.source().as_ref(), path, 1 << 30).expect(path)
    }

    /// The first file of a catalog that all databases share.
    pub(crate) fn shared(&self, name: &str) -> String {
        let catalog = self.cluster.catalog(0);
        let relation = catalog.by_name("pg_catalog", name).expect(name);
        format!("global/{}", relation.filenode)
    }

    /// The first file of a relation.
    pub(crate) fn path(&self, name: &str) -> String {
        let catalog = self.cluster.catalog(self.database);
        let mut relations = catalog.relations.values();
        let relation = relations.find(|one| one.name == name);
        let relation = relation.unwrap_or_else(|| panic!("{name} is not there"));
        let mut homes = self.cluster.homes.iter();
        let home = homes
            .find(|home| home.tablespace == relation.tablespace && home.database == self.database);
        format!("{}/{}", home.expect(name).folder, relation.filenode)
    }

    /// All indexes of users that have more than a page.
    pub(crate) fn indexes(&self) -> Vec<Index> {
        let catalog = self.cluster.catalog(self.database);
        let relations = catalog.relations.values();
        let indexes =
            relations.filter(|one| one.index.is_some() && one.oid >= 16384 && one.filenode != 0);
        let index = |one: &pgclinic_cluster::Relation| {
            let path = self.path(&one.name);
            let bytes = self.read(&path);
            let method = one.page_method()?;
            (bytes.len() > PAGE).then(|| Index {
                oid: one.oid,
                name: one.name.clone(),
                method,
                path,
                bytes,
            })
        };
        indexes.filter_map(index).collect()
    }

    /// A whole checkup with these changes.
    #[track_caller]
    pub(crate) fn checked(&self, patches: Vec<OverlayPatch>) -> CheckDocument {
        self.checked_part(patches, Selection::default())
    }

    /// The same of the users' database alone.
    #[track_caller]
    pub(crate) fn checked_database(&self, patches: Vec<OverlayPatch>) -> CheckDocument {
        let selection = Selection {
            databases: vec![Glob::new(self.database.to_string())],
            ..Selection::default()
        };
        self.checked_part(patches, selection)
    }

    #[track_caller]
    fn checked_part(&self, patches: Vec<OverlayPatch>, selection: Selection) -> CheckDocument {
        let overlay = Overlay::new(directory(&self.pgdata), patches).expect("plain paths");
        let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
        let document = checked_only(&cluster, Level::Full, selection);
        assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
        document
    }
}

pub(crate) fn bytes(path: &str, offset: u64, bytes: Vec<u8>) -> OverlayPatch {
    OverlayPatch::Bytes {
        path: path.into(),
        offset,
        bytes,
    }
}

/// A file of other pages: nothing of the old one shows.
pub(crate) fn replaced(path: &str, pages: Vec<u8>) -> Vec<OverlayPatch> {
    let path = path.to_owned();
    let cut = OverlayPatch::Cut {
        path: path.clone(),
        len: 0,
    };
    vec![cut, bytes(&path, 0, pages)]
}

/// Makes the checksums of a file's pages true.
pub(crate) fn seal(file: &mut [u8]) {
    for (block, page) in (0..).zip(file.chunks_exact_mut(PAGE)) {
        seal_page(page, block);
    }
}

/// As PostgreSQL writes the number of a block inside of a row's.
pub(crate) fn put_block(bytes: &mut [u8], at: usize, block: u32) {
    let [a, b, c, d] = block.to_le_bytes();
    put_u16(bytes, at, u16::from_le_bytes([c, d]));
    put_u16(bytes, at + 2, u16::from_le_bytes([a, b]));
}

pub(crate) fn damage(document: &CheckDocument) -> impl Iterator<Item = &Finding> {
    let findings = document.findings.iter();
    findings.filter(|finding| finding.severity == Severity::Damage)
}
