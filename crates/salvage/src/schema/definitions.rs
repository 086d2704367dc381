//! What the server's own functions print of stored expressions and queries, one by one, so that
//! they can be compared with the server.

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use super::catalog::Catalogs;
use super::ddl;
use super::long_text::CatalogRoom;
use super::refusal::Written;

/// Which function of the server prints it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DefinitionKind {
    /// `pg_get_expr(adbin, adrelid)` of a row of `pg_attrdef`.
    Default,
    /// `pg_get_constraintdef`, with its tablespace.
    Constraint,
    /// `pg_get_indexdef`.
    Index,
    /// `pg_get_viewdef` of a relation, without its semicolon.
    View,
    /// `pg_get_ruledef`.
    Rule,
    /// `pg_get_triggerdef`.
    Trigger,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// What it is.
    pub kind: DefinitionKind,
    /// Its OID in its catalog; of an index or a view, in `pg_class`.
    pub oid: Oid,
    /// The text, or why there is none.
    pub text: Result<String, String>,
}

/// All definitions of things that users or `initdb` made, in the order of kind and OID.
pub fn definitions(cluster: &Cluster, database: Oid) -> Vec<Definition> {
    let (catalog, shared) = (cluster.catalog(database), cluster.catalog(0));
    let catalogs = Catalogs::read(cluster, &catalog, &shared, &CatalogRoom::unlimited());
    let mut found = Vec::new();
    let mut add = |kind, oid, text: Written<String>| {
        let text = text.map_err(|refusal| refusal.to_string());
        found.push(Definition { kind, oid, text });
    };
    for row in catalogs.table("pg_attrdef").iter() {
        add(
            DefinitionKind::Default,
            row.id(),
            ddl::default_text(&catalogs, row),
        );
    }
    for row in catalogs.table("pg_constraint").iter() {
        add(
            DefinitionKind::Constraint,
            row.id(),
            ddl::constraint_text(&catalogs, row),
        );
    }
    for row in catalogs.table("pg_index").iter() {
        let oid = row.oid("indexrelid");
        if oid >= FIRST_NORMAL_OID {
            add(DefinitionKind::Index, oid, ddl::index_text(&catalogs, row));
        }
    }
    for row in catalogs.table("pg_class").iter() {
        if matches!(row.letter("relkind"), 'v' | 'm') {
            add(
                DefinitionKind::View,
                row.id(),
                ddl::view_text(&catalogs, row),
            );
        }
    }
    for row in catalogs.table("pg_rewrite").iter() {
        if row.name("rulename") != "_RETURN" {
            add(
                DefinitionKind::Rule,
                row.id(),
                ddl::rule_text(&catalogs, row),
            );
        }
    }
    for row in catalogs.table("pg_trigger").iter() {
        if !row.flag("tgisinternal") {
            add(
                DefinitionKind::Trigger,
                row.id(),
                ddl::trigger_text(&catalogs, row),
            );
        }
    }
    found.sort_by_key(|definition| (definition.kind, definition.oid));
    found
}
