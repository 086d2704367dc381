//! COMMENT ON …

use super::super::catalog::{Catalogs, Row};
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::item::{Item, Key, class};

/// The comments on a thing, its columns, and what comes with it.
pub(super) fn write(catalogs: &Catalogs<'_>, item: &mut Item) {
    for (at, key) in item.keys.clone().into_iter().enumerate() {
        let mut rows = catalogs.rows("pg_description", "objoid", key.1);
        rows.retain(|row| row.oid("classoid") == key.0);
        rows.sort_by_key(|row| row.int("objsubid"));
        for row in rows {
            let fits = row.whole().and_then(|()| row.fits_but_for(""));
            let text = match &fits {
                Ok(()) => literal(&row.name("description")),
                Err(_) => String::new(),
            };
            let target = match (row.int("objsubid"), at) {
                (0, 0) if !item.spoken.is_empty() => Ok(item.spoken.clone()),
                (0, _) => companion(catalogs, item, key),
                _ => column(catalogs, row),
            };
            let target = fits.and(target);
            item.details
                .push(target.map(|target| format!("COMMENT ON {target} IS {text};")));
        }
    }
}

/// What comes with another thing: a constraint, or the index that it made.
fn companion(catalogs: &Catalogs<'_>, item: &Item, key: Key) -> Written<String> {
    let refusal = || Refusal("a comment on a part that is not known".into());
    match key.0 {
        class::CONSTRAINT => {
            let row = catalogs.row("pg_constraint", key.1).ok_or_else(refusal)?;
            let name = catalogs.quoted(&row.name("conname"));
            Ok(format!("CONSTRAINT {name} ON {}", on(item)))
        }
        class::RELATION => Ok(format!("INDEX {}", catalogs.relation_name(key.1)?)),
        _ => Err(refusal()),
    }
}

/// `DOMAIN name`, or the table alone.
fn on(item: &Item) -> &str {
    let table = item.spoken.strip_prefix("FOREIGN TABLE ");
    let table = table.or_else(|| item.spoken.strip_prefix("TABLE "));
    table.unwrap_or(&item.spoken)
}

fn column(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let (oid, number) = (row.oid("objoid"), row.int("objsubid"));
    let refusal = || Refusal("a comment on a column that is not known".into());
    let relation = catalogs.row("pg_class", oid);
    let relation = relation.filter(|_| row.oid("classoid") == class::RELATION);
    let column = catalogs.attribute(oid, number).ok_or_else(refusal)?;
    let table = catalogs.qualified_relation(relation.ok_or_else(refusal)?)?;
    Ok(format!(
        "COLUMN {table}.{}",
        catalogs.quoted(&column.name("attname"))
    ))
}
