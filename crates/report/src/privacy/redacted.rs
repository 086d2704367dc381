//! A document with pseudonyms: every text of it is rewritten by what its field holds.

use pgclinic_model::document::{Contents, Finding};
use serde_json::{Map, Value};

use super::fields::{Class, NAMED_KEYS, class_of};
use super::names::{Names, is_system_schema};
use super::pseudonyms::{Kind, RedactionKey};
use super::{paths, prose};
use crate::Document;
use crate::document::Error;

/// The document with pseudonyms for names, hosts, paths and values, and without pages. One that has
/// pseudonyms already stays as it is.
///
/// # Errors
/// When what was rewritten fits its schema no longer, which would be a mistake of ours.
pub fn redacted(document: &Document, key: &RedactionKey) -> Result<Document, Error> {
    if document.tool().contains.is_some_and(|own| own.redacted) {
        return Ok(document.clone());
    }
    let mut bare = document.clone();
    bare.withhold_pages();
    match &mut bare {
        // The values of a page have pseudonyms: which are the same is seen.
        Document::Inspect(own) => own.findings.iter_mut().for_each(Finding::withhold_values),
        // What a link to a file of it leads to holds all names.
        Document::Experiment(own) => own.runs.iter_mut().for_each(|run| run.files.clear()),
        other => other.withhold_values(),
    }
    let contains = Contents {
        redacted: true,
        ..Contents::default()
    };
    for tool in bare.tools_mut() {
        tool.contains = Some(contains);
    }
    let mut value = serde_json::to_value(&bare).map_err(Error::NotADocument)?;
    let mut names = Names::new(key);
    learn(&mut names, &value, Field::ROOT);
    names.settle();
    rewrite(&names, &mut value, Field::ROOT);
    let text = value.to_string();
    Document::from_json(text.as_bytes())
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// The field of the object that it stands in.
    parent: &'a str,
    name: &'a str,
    /// It is about a catalog.
    is_of_the_system: bool,
}

impl Field<'_> {
    const ROOT: Field<'static> = Field {
        parent: "",
        name: "",
        is_of_the_system: false,
    };

    /// A field of the object `own` that this field holds.
    fn inside<'b>(self, own: &Map<String, Value>, name: &'b str) -> Field<'b>
    where
        Self: 'b,
    {
        let place = own.get("place").and_then(Value::as_object);
        let is_of_the_system =
            self.is_of_the_system || names_a_catalog(own) || place.is_some_and(names_a_catalog);
        Field {
            parent: self.name,
            name,
            is_of_the_system,
        }
    }
}

impl Field<'_> {
    /// The TOAST table stands in a schema of the system, and its table may be a user's.
    fn names_a_catalog(self) -> bool {
        self.is_of_the_system && self.name != "toast_of"
    }
}

fn names_a_catalog(own: &Map<String, Value>) -> bool {
    let schema = own.get("schema").and_then(Value::as_str);
    schema.is_some_and(is_system_schema)
}

/// Takes in the names that have fields of their own.
fn learn(names: &mut Names<'_>, value: &Value, field: Field<'_>) {
    match value {
        Value::Object(own) => {
            for (name, value) in own {
                learn(names, value, field.inside(own, name));
            }
        }
        Value::Array(all) => all.iter().for_each(|value| learn(names, value, field)),
        Value::String(text) => learn_text(names, text, field),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn learn_text(names: &mut Names<'_>, text: &str, field: Field<'_>) {
    match class_of(field.parent, field.name) {
        Class::Named(Kind::Schema) if is_a_documents(text) => {}
        Class::Named(Kind::Column) | Class::Qualified(Kind::Relation)
            if field.names_a_catalog() =>
        {
            names.learn_of_the_system(text);
        }
        Class::Named(kind) => names.learn(kind, text),
        Class::Qualified(_) if text.contains('/') => {}
        Class::Qualified(kind) => match text.split_once('.') {
            Some((schema, name)) if is_system_schema(schema) => names.learn_of_the_system(name),
            Some((schema, name)) => {
                names.learn(Kind::Schema, schema);
                names.learn(kind, name);
            }
            None => names.learn(kind, text),
        },
        Class::Target => paths::learn_target(names, text),
        Class::Kept | Class::Path | Class::Value | Class::Prose => {}
    }
}

/// The `schema` of a document is none of a database.
fn is_a_documents(text: &str) -> bool {
    text.starts_with("pgclinic.") && text.contains('/')
}

fn rewrite(names: &Names<'_>, value: &mut Value, field: Field<'_>) {
    match value {
        Value::Object(own) => {
            if NAMED_KEYS.contains(&field.name) {
                *own = std::mem::take(own)
                    .into_iter()
                    .map(|(name, value)| (prose::redacted(names, &name), value))
                    .collect();
            }
            let shape = shape_of(own);
            for (name, value) in own.iter_mut() {
                rewrite(names, value, field.inside(&shape, name));
            }
        }
        Value::Array(all) => {
            for value in all {
                rewrite(names, value, field);
            }
        }
        Value::String(text) => *text = rewritten(names, text, field),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What says whether the object is about a catalog, as it was before.
fn shape_of(own: &Map<String, Value>) -> Map<String, Value> {
    let told = own
        .iter()
        .filter(|(name, _)| *name == "schema" || *name == "place");
    told.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn rewritten(names: &Names<'_>, text: &str, field: Field<'_>) -> String {
    match class_of(field.parent, field.name) {
        Class::Kept => text.to_owned(),
        Class::Named(Kind::Schema) if is_a_documents(text) => text.to_owned(),
        Class::Named(Kind::Column) | Class::Qualified(Kind::Relation)
            if field.names_a_catalog() =>
        {
            text.to_owned()
        }
        Class::Named(kind) => names.named(kind, text),
        Class::Qualified(Kind::Type) if names.vocabulary.has(base_of_type(text)) => text.to_owned(),
        Class::Qualified(kind) => names.qualified(kind, text),
        Class::Path => paths::redacted(names, text),
        Class::Target => paths::target(names, text),
        Class::Value => names.pseudonym(Kind::Value, text),
        Class::Prose => prose::redacted(names, text),
    }
}

/// `varchar` of `varchar(20)[]`.
fn base_of_type(name: &str) -> &str {
    name.split(['(', '[']).next().unwrap_or(name)
}
