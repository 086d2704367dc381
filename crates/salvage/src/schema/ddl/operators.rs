//! Casts, operators, operator families and classes; truth: `src/bin/pg_dump/pg_dump.c`.

use super::super::catalog::{Catalogs, PG_CATALOG, Row};
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::item::{Item, Items, Rank, class, is_own};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_cast").iter() {
        if is_own(catalogs, class::CAST, row.id()) && !comes_with_its_type(catalogs, row) {
            out.push(cast(catalogs, row));
        }
    }
    for row in catalogs.table("pg_operator").iter() {
        // A shell that only names a commutator has no function.
        if is_own(catalogs, class::OPERATOR, row.id()) && row.oid("oprcode") != 0 {
            out.push(operator(catalogs, row));
        }
    }
    for row in catalogs.table("pg_opfamily").iter() {
        if is_own(catalogs, class::FAMILY, row.id()) {
            out.push(family(catalogs, row));
        }
    }
    for row in catalogs.table("pg_opclass").iter() {
        if is_own(catalogs, class::CLASS, row.id()) {
            out.push(operator_class(catalogs, row));
        }
    }
}

/// From a range to its multirange.
fn comes_with_its_type(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let depends = catalogs.rows("pg_depend", "objid", row.id());
    depends
        .iter()
        .any(|row| row.oid("classid") == class::CAST && row.letter("deptype") == 'i')
        || catalogs.comes_with_a_range(row.id())
}

fn cast(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = || -> Written<String> {
        let source = catalogs.type_name(row.oid("castsource"))?;
        let target = catalogs.type_name(row.oid("casttarget"))?;
        Ok(format!("({source} AS {target})"))
    };
    let text = name().and_then(|name| {
        let way = match row.letter("castmethod") {
            'f' => format!(
                "WITH FUNCTION {}",
                catalogs.function_signature(row.oid("castfunc"))?
            ),
            'i' => "WITH INOUT".into(),
            _ => "WITHOUT FUNCTION".into(),
        };
        let context = match row.letter("castcontext") {
            'a' => " AS ASSIGNMENT",
            'i' => " AS IMPLICIT",
            _ => "",
        };
        Ok(format!("CREATE CAST {name} {way}{context};"))
    });
    Item::new(
        Rank::Cast,
        (class::CAST, row.id()),
        named("CAST", &name()),
        text,
    )
}

/// An operator's own name with its schema.
fn bare_operator(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let schema = catalogs.schema_name(row.oid("oprnamespace"))?;
    Ok(format!(
        "{}.{}",
        catalogs.quoted(&schema),
        row.name("oprname")
    ))
}

fn sides(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let side = |column: &str| match row.oid(column) {
        0 => Ok("NONE".to_owned()),
        oid => catalogs.type_name(oid),
    };
    Ok(format!("{}, {}", side("oprleft")?, side("oprright")?))
}

fn operator(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = bare_operator(catalogs, row);
    let spoken = name
        .clone()
        .and_then(|name| Ok(format!("{name} ({})", sides(catalogs, row)?)));
    let text = name.and_then(|name| operator_text(catalogs, row, &name));
    let what = named("OPERATOR", &spoken);
    let key = (class::OPERATOR, row.id());
    Item::new(Rank::Operator, key, what, text).owned_by(row.oid("oprowner"))
}

fn operator_text(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let mut parts = vec![format!(
        "FUNCTION = {}",
        catalogs.function_name(row.oid("oprcode"))?
    )];
    for (word, column) in [("LEFTARG", "oprleft"), ("RIGHTARG", "oprright")] {
        if row.oid(column) != 0 {
            parts.push(format!("{word} = {}", catalogs.type_name(row.oid(column))?));
        }
    }
    for (word, column) in [("COMMUTATOR", "oprcom"), ("NEGATOR", "oprnegate")] {
        if let Some(other) = catalogs.row("pg_operator", row.oid(column)) {
            let other = bare_operator(catalogs, other)?;
            parts.push(format!("{word} = OPERATOR({other})"));
        }
    }
    for (word, column) in [("MERGES", "oprcanmerge"), ("HASHES", "oprcanhash")] {
        if row.flag(column) {
            parts.push(word.into());
        }
    }
    for (word, column) in [("RESTRICT", "oprrest"), ("JOIN", "oprjoin")] {
        if row.oid(column) != 0 {
            parts.push(format!(
                "{word} = {}",
                catalogs.function_name(row.oid(column))?
            ));
        }
    }
    Ok(format!(
        "CREATE OPERATOR {name} (\n    {}\n);",
        parts.join(",\n    ")
    ))
}

fn method(catalogs: &Catalogs<'_>, oid: u32) -> Written<String> {
    let row = catalogs.row("pg_am", oid);
    let row = row.ok_or_else(|| Refusal::absent("access method", oid))?;
    Ok(catalogs.quoted(&row.name("amname")))
}

fn family_name(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let name = catalogs.with_schema(row.oid("opfnamespace"), &row.name("opfname"))?;
    Ok(format!(
        "{name} USING {}",
        method(catalogs, row.oid("opfmethod"))?
    ))
}

fn family(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = family_name(catalogs, row);
    let what = named("OPERATOR FAMILY", &name);
    let text = name
        .clone()
        .map(|name| format!("CREATE OPERATOR FAMILY {name};"));
    let key = (class::FAMILY, row.id());
    let mut item = Item::new(Rank::Operator, key, what, text).owned_by(row.oid("opfowner"));
    // Members that belong to no class.
    let loose = members(catalogs, row.id(), key);
    match loose.and_then(|loose| Ok((loose, name?))) {
        Ok((loose, _)) if loose.is_empty() => {}
        Ok((loose, name)) => {
            let loose = loose.join(",\n    ");
            item.details.push(Ok(format!(
                "ALTER OPERATOR FAMILY {name} ADD\n    {loose};"
            )));
        }
        Err(refusal) => item.details.push(Err(refusal)),
    }
    item
}

fn operator_class(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let text = || -> Written<String> {
        let name = catalogs.with_schema(row.oid("opcnamespace"), &row.name("opcname"))?;
        let default = if row.flag("opcdefault") {
            " DEFAULT"
        } else {
            ""
        };
        let ty = catalogs.type_name(row.oid("opcintype"))?;
        let method = method(catalogs, row.oid("opcmethod"))?;
        let family = catalogs.row("pg_opfamily", row.oid("opcfamily"));
        let family =
            family.ok_or_else(|| Refusal::absent("operator family", row.oid("opcfamily")))?;
        let family = catalogs.with_schema(family.oid("opfnamespace"), &family.name("opfname"))?;
        let key = (class::CLASS, row.id());
        let mut parts = members(catalogs, row.oid("opcfamily"), key)?;
        if row.oid("opckeytype") != 0 || parts.is_empty() {
            let kept = match row.oid("opckeytype") {
                0 => row.oid("opcintype"),
                kept => kept,
            };
            parts.insert(0, format!("STORAGE {}", catalogs.type_name(kept)?));
        }
        let parts = parts.join(",\n    ");
        Ok(format!(
            "CREATE OPERATOR CLASS {name}{default}\n    FOR TYPE {ty} USING {method} FAMILY {family} AS\n    {parts};"
        ))
    };
    let name = catalogs
        .with_schema(row.oid("opcnamespace"), &row.name("opcname"))
        .and_then(|name| {
            Ok(format!(
                "{name} USING {}",
                method(catalogs, row.oid("opcmethod"))?
            ))
        });
    let what = named("OPERATOR CLASS", &name);
    let key = (class::CLASS, row.id());
    let mut item = Item::new(Rank::OperatorClass, key, what, text()).owned_by(row.oid("opcowner"));
    item.needs
        .extend(member_needs(catalogs, row.oid("opcfamily"), key));
    item
}

/// Members of a family that depend on `owner`, the family itself or a class of it.
fn members(catalogs: &Catalogs<'_>, family: u32, owner: (u32, u32)) -> Written<Vec<String>> {
    let mut parts = Vec::new();
    for row in own_members(catalogs, ("pg_amop", "amopfamily"), family, owner) {
        let operator = catalogs.row("pg_operator", row.oid("amopopr"));
        let operator = operator.ok_or_else(|| Refusal::absent("operator", row.oid("amopopr")))?;
        let name = bare_operator(catalogs, operator)?;
        let name = match operator.oid("oprnamespace") {
            PG_CATALOG => operator.name("oprname"),
            _ => name,
        };
        let types = sides(catalogs, operator)?;
        let mut part = format!("OPERATOR {} {name}({types})", row.int("amopstrategy"));
        if row.oid("amopsortfamily") != 0 {
            let family = catalogs.opfamily_name(row.oid("amopsortfamily"))?;
            part += &format!(" FOR ORDER BY {family}");
        }
        parts.push(part);
    }
    for row in own_members(catalogs, ("pg_amproc", "amprocfamily"), family, owner) {
        let function = catalogs.function_signature(row.oid("amproc"))?;
        let left = catalogs.type_name(row.oid("amproclefttype"))?;
        let right = catalogs.type_name(row.oid("amprocrighttype"))?;
        parts.push(format!(
            "FUNCTION {} ({left}, {right}) {function}",
            row.int("amprocnum")
        ));
    }
    Ok(parts)
}

fn own_members<'c>(
    catalogs: &'c Catalogs<'_>,
    (table, key): (&str, &str),
    family: u32,
    owner: (u32, u32),
) -> Vec<Row<'c>> {
    let mut rows = catalogs.rows(table, key, family);
    rows.retain(|row| {
        let depends = catalogs.rows("pg_depend", "objid", row.id());
        depends.iter().any(|depend| {
            (depend.oid("refclassid"), depend.oid("refobjid")) == owner
                && depend.letter("deptype") != 'n'
        })
    });
    rows.sort_by_key(|row| (row.int("amopstrategy"), row.int("amprocnum"), row.id()));
    rows
}

fn member_needs(catalogs: &Catalogs<'_>, family: u32, owner: (u32, u32)) -> Vec<(u32, u32)> {
    let operators = own_members(catalogs, ("pg_amop", "amopfamily"), family, owner).into_iter();
    let functions = own_members(catalogs, ("pg_amproc", "amprocfamily"), family, owner).into_iter();
    operators
        .map(|row| (class::OPERATOR, row.oid("amopopr")))
        .chain(functions.map(|row| (class::FUNCTION, row.oid("amproc"))))
        .collect()
}
