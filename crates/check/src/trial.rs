//! Puts one page before one check, for the tests that stand beside each check.

use pgclinic_cluster::{
    Build, DatabaseDirectory, ForkContext, ForkFiles, Persistence, RelKind, Relation, Segment,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{ColumnLayout, Fork, Layout, Lsn, MultiXactId, Page, Xid};
use pgclinic_model::document::{FileKind, Level};

use crate::check::{Checksum, ForkCx, Limits, PageCheck, PageCx};
use crate::findings::Findings;

/// OID of the TOAST relation of the relation on trial.
pub(crate) const TOAST_OID: u32 = 16390;

/// A fork to put pages into: an ordinary table of PostgreSQL 18 until told otherwise.
pub(crate) struct Trial {
    pub(crate) relation: Relation,
    pub(crate) columns: Option<Vec<ColumnLayout>>,
    pub(crate) kind: FileKind,
    pub(crate) method: AccessMethod,
    pub(crate) limits: Option<Limits>,
    pub(crate) major: u16,
    pub(crate) block: u32,
}

impl Trial {
    /// A table with relfrozenxid 700 and relminmxid 5 in a cluster whose next transaction is 1000
    /// and next multixact 20. Its columns are unknown.
    pub(crate) fn table() -> Self {
        Trial {
            relation: relation(),
            columns: None,
            kind: FileKind::Table,
            method: AccessMethod::Heap,
            limits: Some(Limits {
                next_xid: Xid(1000),
                oldest_xid: Xid(700),
                next_multi: MultiXactId(20),
                oldest_multi: MultiXactId(5),
                wal_end: Lsn(1 << 40),
            }),
            major: 18,
            block: 0,
        }
    }

    /// A table with these columns, each `(attlen, attalign)`.
    pub(crate) fn with_columns(columns: &[(i16, u8)]) -> Self {
        let layout = |(attlen, attalign): &(i16, u8)| ColumnLayout {
            attlen: *attlen,
            attalign: *attalign,
        };
        Trial {
            columns: Some(columns.iter().map(layout).collect()),
            ..Trial::table()
        }
    }

    /// A TOAST relation.
    pub(crate) fn toast() -> Self {
        let mut trial = Trial::with_columns(&[(4, 4), (4, 4), (-1, 4)]);
        trial.relation.kind = RelKind::Toast;
        trial.relation.name = "pg_toast_16384".into();
        trial.relation.toast = 0;
        trial.kind = FileKind::Toast;
        trial
    }

    /// An index of this access method.
    pub(crate) fn index(method: AccessMethod) -> Self {
        let mut trial = Trial::table();
        trial.relation.kind = RelKind::Index;
        trial.kind = FileKind::Index;
        trial.method = method;
        trial
    }

    /// A sequence.
    pub(crate) fn sequence() -> Self {
        let mut trial = Trial::index(AccessMethod::Sequence);
        trial.relation.kind = RelKind::Sequence;
        trial.kind = FileKind::Sequence;
        trial
    }

    /// What the check tells of the page, one line a finding: `item rule: message`.
    pub(crate) fn told(&self, check: &dyn PageCheck, page: &[u8]) -> Vec<String> {
        let drafts = self.drafts(check, page).into_iter();
        let line = |draft: crate::findings::Draft| match draft.item {
            Some(item) => format!("{item} {}: {}", draft.rule.name, draft.message),
            None => format!("{}: {}", draft.rule.name, draft.message),
        };
        drafts.map(line).collect()
    }

    /// The server's words of the first finding.
    pub(crate) fn server_says(&self, check: &dyn PageCheck, page: &[u8]) -> Option<String> {
        self.drafts(check, page).into_iter().next()?.server_says
    }

    fn drafts(&self, check: &dyn PageCheck, page: &[u8]) -> Vec<crate::findings::Draft> {
        let files = files();
        let base = ForkContext {
            layout: Layout::of_major(self.major),
            relation: Some(&self.relation),
            database: Some("postgres"),
            kind: self.kind,
            method: Some(self.method),
            columns: self.columns.as_deref(),
            blocks: 1,
            ..ForkContext::nameless(Build::USUAL, &files)
        };
        let fork = ForkCx {
            limits: self.limits,
            ..ForkCx::alone(base, Level::Structure)
        };
        let cx = PageCx {
            fork: &fork,
            block: self.block,
            checksum: Checksum::Off,
        };
        let mut out = Findings::default();
        let page = Page::parse(page).expect("a block size");
        check.check(page, &cx, &mut out);
        out.take_drafts()
    }
}

fn files() -> ForkFiles {
    ForkFiles {
        home: DatabaseDirectory {
            tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
            database: 5,
            folder: "base/5".into(),
        },
        filenode: 16384,
        fork: Fork::Main,
        temporary: None,
        segments: vec![Segment {
            number: 0,
            len: 8192,
        }],
    }
}

fn relation() -> Relation {
    Relation {
        oid: 16384,
        schema: "public".into(),
        name: "docs".into(),
        kind: RelKind::Table,
        persistence: Persistence::Permanent,
        access_method: Some(AccessMethod::Heap),
        foreign_method: None,
        filenode: 16384,
        tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
        shared: false,
        relpages: 1,
        relallvisible: 0,
        reltuples: None,
        relfrozenxid: Xid(700),
        relminmxid: MultiXactId(5),
        toast: TOAST_OID,
        toast_of: 0,
        relnatts: 1,
        populated: true,
        columns: None,
        layouts: None,
        index: None,
        being_built: false,
    }
}
