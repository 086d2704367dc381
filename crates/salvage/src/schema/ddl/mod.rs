//! A schema file that `psql` accepts: everything that a database's catalogs describe, in an order
//! in which it can be made again, in two parts with the data between them.
//!
//! Each file here writes one kind of thing as [`Item`]s; [`order`] sorts them by what depends on
//! what. What cannot be written becomes a comment with the reason, and stands in [`Ddl::refused`].

mod comments;
mod constraints;
mod containers;
mod conversions;
mod database;
mod default_rights;
mod extension_tables;
mod functions;
mod generation;
mod grants;
mod indexes;
mod item;
mod large_objects;
mod lost_objects;
mod operators;
mod order;
mod partitions;
mod relations;
mod replication;
mod roles;
mod schemas;
mod sequences;
mod table_parts;
mod text_search;
mod triggers;
mod types;
mod views;

use std::collections::BTreeSet;
use std::io;

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_model::document::NotChecked;

use super::catalog::{Catalogs, DescribedColumns};
use super::long_text::{CatalogRoom, Statement};
use item::{Item, Items, Stage};

pub(super) use constraints::definition as constraint_text;
pub(crate) use conversions::encoding_name;
pub(crate) use extension_tables::{ExtensionTable, extension_table};
pub(crate) use generation::columns_made_plain;
pub(super) use indexes::statement as index_text;
pub(crate) use large_objects::{each_object_detail, object_details_in};
pub(crate) use schemas::question_for_full_schemas;
pub(super) use sequences::columns_filled_by;
pub(super) use table_parts::default_text;
pub(super) use triggers::definition as trigger_text;
pub(super) use views::{definition as view_text, rule_text};

/// What of a database could not be written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `VIEW public.v`
    pub what: String,
    /// In words.
    pub why: String,
}

/// The schema of one database.
#[derive(Default)]
pub struct Ddl {
    /// Schemas, types, functions, tables, views, defaults.
    pub(crate) before_data: Statement,
    /// Indexes, constraints, triggers, rules, policies; materialised views are filled.
    pub(crate) after_data: Statement,
    /// Statements of both parts.
    pub statements: usize,
    /// The same one by one, in order, for who runs them here.
    pub(crate) steps: Vec<Step>,
    /// Schemas that hold something, by name.
    pub(crate) schemas: BTreeSet<String>,
    /// Materialised views whose queries are lost, and which are tables with the rows that they had.
    pub(crate) made_tables: BTreeSet<Oid>,
    /// Relations that are left out.
    pub(crate) refused_relations: BTreeSet<Oid>,
    /// What was left out.
    pub refused: Vec<Refused>,
    /// What of the catalogs could not be read.
    pub troubles: Vec<String>,
}

/// A statement of a schema.
pub(crate) struct Step {
    /// `TABLE public.t`, for messages.
    pub(crate) what: String,
    pub(crate) sql: Statement,
    pub(crate) is_after_data: bool,
}

/// What makes the statements mean what they say in a session.
pub(crate) const SESSION: &str = HEAD;

impl Ddl {
    /// Both parts in one file.
    ///
    /// # Errors
    ///
    /// What the temporary file says that long statements stand in.
    pub fn whole(&self) -> io::Result<String> {
        self.file().text()
    }

    /// The same, in pieces.
    pub(crate) fn file(&self) -> Statement {
        let mut file = self.before_data.clone();
        file.push("\n-- Here the data belongs.\n\n");
        file.append(&self.after_data);
        file
    }

    /// Nothing is in it that `initdb` does not make.
    pub(crate) fn is_bare(&self) -> bool {
        self.statements <= 1 && self.refused.is_empty() && self.troubles.is_empty()
    }

    /// Reads the catalogs of a database and writes its schema, all of it in memory.
    pub fn of_database(cluster: &Cluster, database: Oid) -> Ddl {
        let described = DescribedColumns::new();
        Ddl::within(cluster, database, &CatalogRoom::unlimited(), &described)
    }

    /// The same; what is long stands in a temporary file. `described` are columns that the catalogs
    /// do not give.
    pub(crate) fn within(
        cluster: &Cluster,
        database: Oid,
        room: &CatalogRoom,
        described: &DescribedColumns,
    ) -> Ddl {
        let catalog = cluster.catalog(database);
        let shared = cluster.catalog(0);
        let catalogs = Catalogs::read_with(cluster, (&catalog, &shared), room, described);
        Ddl::of_catalogs(&catalogs)
    }

    /// What the catalogs did not give, of this database.
    pub(crate) fn gaps(&self, database: &str) -> impl Iterator<Item = NotChecked> {
        self.troubles.iter().map(move |why| NotChecked {
            what: format!("part of the schema of database {database}"),
            why: why.clone(),
            inherent: false,
        })
    }

    pub(crate) fn of_catalogs(catalogs: &Catalogs<'_>) -> Ddl {
        let mut items = Items::new(&catalogs.store);
        for collect in COLLECTORS {
            collect(catalogs, &mut items);
        }
        let mut items = items.list;
        order::refuse_followers(catalogs, &mut items);
        for item in &mut items {
            item.add_details(catalogs);
            item.keep(&catalogs.store);
        }
        let mut ddl = Ddl {
            troubles: catalogs.troubles.clone(),
            schemas: schemas::that_hold_something(catalogs),
            made_tables: views::made_tables(catalogs),
            ..Ddl::default()
        };
        ddl.before_data.push(HEAD);
        ddl.after_data.push(HEAD);
        match roles::missing_roles(catalogs, &items) {
            Ok(roles) => {
                ddl.before_data.push(&roles);
                let what = "the roles that own things";
                ddl.step(what, &Statement::from(roles), Stage::BeforeData);
            }
            Err(error) => ddl.troubles.push(error.to_string()),
        }
        for item in order::sorted(catalogs, items) {
            ddl.write(&item);
        }
        ddl
    }

    fn step(&mut self, what: &str, sql: &Statement, stage: Stage) {
        if !sql.is_empty() {
            self.steps.push(Step {
                what: what.to_owned(),
                sql: sql.clone(),
                is_after_data: stage == Stage::AfterData,
            });
        }
    }

    fn write(&mut self, item: &Item) {
        let texts = std::iter::once(&item.text).chain(&item.kept_details);
        for text in texts.flatten() {
            self.step(&item.what, text, item.stage);
        }
        let part = match item.stage {
            Stage::BeforeData => &mut self.before_data,
            Stage::AfterData => &mut self.after_data,
        };
        let head = one_line(&item.what);
        match &item.text {
            Ok(text) => {
                self.statements += 1;
                part.push(&format!("\n-- {head}\n"));
                part.append(text);
                part.push("\n");
            }
            Err(refusal) => {
                let why = one_line(&refusal.0);
                let relations = item
                    .keys
                    .iter()
                    .filter(|key| key.0 == item::class::RELATION);
                self.refused_relations.extend(relations.map(|key| key.1));
                part.push(&format!("\n-- NOT WRITTEN: {head}: {why}\n"));
                self.refused.push(Refused {
                    what: item.what.clone(),
                    why: refusal.0.clone(),
                });
            }
        }
        for detail in &item.kept_details {
            match detail {
                Ok(text) => {
                    part.append(text);
                    part.push("\n");
                }
                Err(refusal) => {
                    let why = one_line(&refusal.0);
                    part.push(&format!("-- NOT WRITTEN: of {head}: {why}\n"));
                    self.refused.push(Refused {
                        what: item.what.clone(),
                        why: refusal.0.clone(),
                    });
                }
            }
        }
    }
}

/// What makes the rest mean what it says, whatever the settings of the session.
const HEAD: &str = "\
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET client_min_messages = warning;
SET row_security = off;
SELECT pg_catalog.set_config('search_path', '', false);
";

/// Whatever stands in a name, a comment stays a comment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// What puts the things of one kind on the list.
type Collector = fn(&Catalogs<'_>, &mut Items);

const COLLECTORS: &[Collector] = &[
    containers::collect,
    types::collect,
    functions::collect,
    operators::collect,
    text_search::collect,
    relations::collect,
    sequences::collect,
    views::collect,
    table_parts::collect,
    indexes::collect,
    constraints::collect,
    triggers::collect,
    conversions::collect,
    replication::collect,
    default_rights::collect,
    database::collect,
    lost_objects::collect,
];
