//! Functions, procedures and aggregates; truth: `pg_get_functiondef`, `dumpAgg` in
//! `src/bin/pg_dump/pg_dump.c`.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::expression::tree::Value;
use super::super::identifier::{dollar_quoted, literal};
use super::super::long_text::Statement;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Rank, class, is_own};

const LANGUAGE_INTERNAL: u32 = 12;
const LANGUAGE_C: u32 = 13;
const LANGUAGE_SQL: u32 = 14;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_proc").iter() {
        if is_own(catalogs, class::FUNCTION, row.id()) && !is_made_by_a_type(catalogs, row) {
            out.push(item(catalogs, row));
        }
    }
}

/// Constructors of ranges come with their type.
fn is_made_by_a_type(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let depends = catalogs.rows("pg_depend", "objid", row.id());
    depends.iter().any(|depend| {
        depend.oid("classid") == class::FUNCTION
            && depend.oid("refclassid") == class::TYPE
            && depend.letter("deptype") == 'i'
    }) || catalogs.makes_a_range(row.id(), row.oid("prorettype"))
}

fn item(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let (word, kind) = match row.letter("prokind") {
        'a' => ("AGGREGATE", GrantObject::Function),
        'p' => ("PROCEDURE", GrantObject::Procedure),
        _ => ("FUNCTION", GrantObject::Function),
    };
    let what = named(word, &signature(catalogs, row));
    let fits = row
        .whole()
        .and_then(|()| row.fits_but_for(expression::BODY));
    let text = fits.and_then(|()| match row.letter("prokind") {
        'a' => aggregate(catalogs, row).map(Statement::from),
        _ => function(catalogs, row),
    });
    let item = Item::new(Rank::Function, (class::FUNCTION, row.id()), what, text);
    let item = item.owned_by(row.oid("proowner"));
    item.with_rights(kind, row, "proacl")
}

/// `schema.name(types)`, as ALTER and COMMENT name it.
fn signature(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let name = catalogs.with_schema(row.oid("pronamespace"), &row.name("proname"))?;
    if row.letter("prokind") == 'a' {
        return Ok(format!("{name}({})", aggregate_arguments(catalogs, row)?));
    }
    let mut types = Vec::new();
    for argument in arguments(row) {
        if row.letter("prokind") == 'p' {
            types.push(procedure_argument(catalogs, &argument)?);
        } else if argument.is_input() {
            types.push(catalogs.type_name(argument.ty)?);
        }
    }
    Ok(format!("{name}({})", types.join(", ")))
}

/// One argument.
struct Argument {
    mode: char,
    name: String,
    ty: u32,
}

impl Argument {
    fn is_input(&self) -> bool {
        matches!(self.mode, 'i' | 'b' | 'v')
    }

    fn text(&self, catalogs: &Catalogs<'_>) -> Written<String> {
        let mode = match self.mode {
            'o' => "OUT ",
            'b' => "INOUT ",
            'v' => "VARIADIC ",
            _ => "",
        };
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!("{} ", catalogs.quoted(name)),
        };
        Ok(format!("{mode}{name}{}", catalogs.type_name(self.ty)?))
    }
}

/// Procedures may differ by the modes of their arguments alone, so that all are told.
fn procedure_argument(catalogs: &Catalogs<'_>, argument: &Argument) -> Written<String> {
    let text = argument.text(catalogs)?;
    Ok(if argument.mode == 'i' {
        format!("IN {text}")
    } else {
        text
    })
}

fn arguments(row: Row<'_>) -> Vec<Argument> {
    let (types, modes, names) = (
        row.oids("proallargtypes"),
        row.letters("proargmodes"),
        row.texts("proargnames"),
    );
    let types = if types.is_empty() {
        row.oids("proargtypes")
    } else {
        types
    };
    let named = types.into_iter().enumerate();
    named
        .map(|(at, ty)| Argument {
            mode: modes.get(at).copied().unwrap_or('i'),
            name: names.get(at).cloned().unwrap_or_default(),
            ty,
        })
        .collect()
}

fn function(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<Statement> {
    let name = catalogs.with_schema(row.oid("pronamespace"), &row.name("proname"))?;
    let is_procedure = row.letter("prokind") == 'p';
    let word = if is_procedure {
        "PROCEDURE"
    } else {
        "FUNCTION"
    };
    let arguments_text = argument_list(catalogs, row)?;
    let mut text = format!("CREATE {word} {name}({arguments_text})");
    if !is_procedure {
        text += &format!(" RETURNS {}", result(catalogs, row)?);
    }
    let language = catalogs
        .row("pg_language", row.oid("prolang"))
        .ok_or_else(|| Refusal::absent("language", row.oid("prolang")))?;
    text += &format!(
        "\n    LANGUAGE {}",
        catalogs.quoted(&language.name("lanname"))
    );
    let types = row.oids("protrftypes");
    if !types.is_empty() {
        let types: Written<Vec<String>> = types
            .into_iter()
            .map(|oid| Ok(format!("FOR TYPE {}", catalogs.type_name(oid)?)))
            .collect();
        text += &format!(" TRANSFORM {}", types?.join(", "));
    }
    text += &attributes(catalogs, row)?;
    text += "\n    ";
    let statement = Statement::from(text);
    let is_written_piecewise =
        !row.has("prosqlbody") && !matches!(row.oid("prolang"), LANGUAGE_C | LANGUAGE_INTERNAL);
    let long = if is_written_piecewise {
        row.long_text(expression::BODY)?
    } else {
        None
    };
    let statement = match long {
        Some(long) => statement.with("AS ").with_long(long),
        None => statement.with(&body(catalogs, row)?),
    };
    Ok(statement.with(";"))
}

/// Arguments with names and defaults, without the columns of RETURNS TABLE.
fn argument_list(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let all = arguments(row);
    let inputs = all.iter().filter(|argument| argument.is_input()).count();
    let count = usize::try_from(row.int("pronargdefaults")).unwrap_or(0);
    let tree = expression::stored(row, "proargdefaults")?;
    let mut defaults = tree.as_ref().map(|tree| tree.list().iter());
    let mut input = 0;
    let mut parts = Vec::new();
    for argument in all.iter().filter(|argument| argument.mode != 't') {
        let mut part = match row.letter("prokind") {
            'p' => procedure_argument(catalogs, argument)?,
            _ => argument.text(catalogs)?,
        };
        if argument.is_input() {
            input += 1;
            if input + count > inputs {
                let default = defaults.as_mut().and_then(Iterator::next);
                let default = default.ok_or_else(|| Refusal("a default is missing".into()))?;
                part += &format!(
                    " DEFAULT {}",
                    expression::on_relation(catalogs, default, 0)?
                );
            }
        }
        parts.push(part);
    }
    Ok(parts.join(", "))
}

fn result(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let all = arguments(row);
    let columns: Written<Vec<String>> = all
        .iter()
        .filter(|argument| argument.mode == 't')
        .map(|argument| argument.text(catalogs))
        .collect();
    let columns = columns?;
    if !columns.is_empty() {
        return Ok(format!("TABLE({})", columns.join(", ")));
    }
    let set = if row.flag("proretset") { "SETOF " } else { "" };
    Ok(format!(
        "{set}{}",
        catalogs.type_name(row.oid("prorettype"))?
    ))
}

fn attributes(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let mut text = String::new();
    if row.letter("prokind") == 'w' {
        text += " WINDOW";
    }
    text += match row.letter("provolatile") {
        'i' => " IMMUTABLE",
        's' => " STABLE",
        _ => "",
    };
    for (word, column) in [
        (" STRICT", "proisstrict"),
        (" SECURITY DEFINER", "prosecdef"),
        (" LEAKPROOF", "proleakproof"),
    ] {
        text += if row.flag(column) { word } else { "" };
    }
    let language = row.oid("prolang");
    let usual_cost = if language == LANGUAGE_INTERNAL || language == LANGUAGE_C {
        1.0
    } else {
        100.0
    };
    let is_procedure = row.letter("prokind") == 'p';
    if !is_procedure && (row.float("procost") - usual_cost).abs() > f32::EPSILON {
        text += &format!(" COST {}", row.float("procost"));
    }
    let rows = row.float("prorows");
    if row.flag("proretset") && rows != 0.0 && (rows - 1000.0).abs() > f32::EPSILON {
        text += &format!(" ROWS {rows}");
    }
    if row.oid("prosupport") != 0 {
        text += &format!(
            " SUPPORT {}",
            catalogs.function_name(row.oid("prosupport"))?
        );
    }
    text += match row.letter("proparallel") {
        's' => " PARALLEL SAFE",
        'r' => " PARALLEL RESTRICTED",
        _ => "",
    };
    for setting in row.texts("proconfig") {
        text += &format!("\n    {}", setting_text(catalogs, &setting));
    }
    Ok(text)
}

/// `SET name TO value`, where some settings are lists of names.
fn setting_text(catalogs: &Catalogs<'_>, setting: &str) -> String {
    const LISTS: [&str; 6] = [
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    ];
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let value = if LISTS.contains(&name) {
        list_elements(value)
            .iter()
            .map(|part| literal(part))
            .collect::<Vec<_>>()
            .join(", ")
    } else {
        literal(value)
    };
    let name: Vec<String> = name.split('.').map(|part| catalogs.quoted(part)).collect();
    format!("SET {} TO {value}", name.join("."))
}

/// The names in `"$user", public`.
fn list_elements(list: &str) -> Vec<String> {
    let mut elements = vec![String::new()];
    let mut quoted = false;
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        let is_doubled = quoted && c == '"' && characters.peek() == Some(&'"');
        match c {
            '"' if is_doubled => {
                characters.next();
                if let Some(last) = elements.last_mut() {
                    last.push('"');
                }
            }
            '"' => quoted = !quoted,
            ',' if !quoted => elements.push(String::new()),
            ' ' if !quoted => {}
            _ => {
                if let Some(last) = elements.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    elements
}

fn body(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    if let Some(tree) = expression::stored(row, "prosqlbody")? {
        return sql_body(catalogs, row, &tree);
    }
    row.fits_but_for("")?;
    let source = row.name(expression::BODY);
    match row.oid("prolang") {
        LANGUAGE_C => {
            let file = literal(&row.name("probin"));
            Ok(format!("AS {file}, {}", literal(&source)))
        }
        LANGUAGE_INTERNAL => Ok(format!("AS {}", literal(&source))),
        LANGUAGE_SQL if source.is_empty() => Ok("AS ''".into()),
        _ => Ok(format!("AS {}", dollar_quoted(&source))),
    }
}

/// `RETURN …` or `BEGIN ATOMIC … END`
fn sql_body(catalogs: &Catalogs<'_>, row: Row<'_>, tree: &Value) -> Written<String> {
    let name = row.name("proname");
    let inputs = arguments(row).into_iter().filter(Argument::is_input);
    let names: Vec<String> = inputs.map(|argument| argument.name).collect();
    if let Some(query) = tree.node() {
        let text = expression::body_statement(catalogs, query, &name, &names)?;
        return Ok(text.trim_start().to_owned());
    }
    let statements = tree
        .list()
        .first()
        .map(|list| list.list())
        .unwrap_or_default();
    let mut text = "BEGIN ATOMIC\n".to_owned();
    for statement in statements {
        let query = statement.node();
        let query = query.ok_or_else(|| Refusal("a statement is no query".into()))?;
        text += &expression::body_statement(catalogs, query, &name, &names)?;
        text += ";\n";
    }
    Ok(text + "END")
}

fn aggregate_arguments(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let aggregate = aggregate_row(catalogs, row)?;
    let all = arguments(row);
    let texts: Written<Vec<String>> = all.iter().map(|argument| argument.text(catalogs)).collect();
    let mut texts = texts?;
    if aggregate.letter("aggkind") == 'n' {
        return Ok(if texts.is_empty() {
            "*".into()
        } else {
            texts.join(", ")
        });
    }
    let direct = usize::try_from(aggregate.int("aggnumdirectargs")).unwrap_or(0);
    let is_variadic_only = direct == all.len() && all.last().is_some_and(|last| last.mode == 'v');
    let ordered = if is_variadic_only {
        texts.last().cloned().unwrap_or_default()
    } else {
        texts.split_off(direct.min(texts.len())).join(", ")
    };
    let space = if texts.is_empty() { "" } else { " " };
    Ok(format!("{}{space}ORDER BY {ordered}", texts.join(", ")))
}

fn aggregate_row<'c>(catalogs: &'c Catalogs<'_>, row: Row<'_>) -> Written<Row<'c>> {
    let found = catalogs.one("pg_aggregate", "aggfnoid", row.id());
    found.ok_or_else(|| Refusal::absent("aggregate", row.id()))
}

fn aggregate(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let own = aggregate_row(catalogs, row)?;
    let name = catalogs.with_schema(row.oid("pronamespace"), &row.name("proname"))?;
    let mut parts = Vec::new();
    let mut function = |word: &str, column: &str, own: Row<'_>| -> Written {
        if own.oid(column) != 0 {
            parts.push(format!(
                "{word} = {}",
                catalogs.function_name(own.oid(column))?
            ));
        }
        Ok(())
    };
    function("SFUNC", "aggtransfn", own)?;
    function("FINALFUNC", "aggfinalfn", own)?;
    function("COMBINEFUNC", "aggcombinefn", own)?;
    function("SERIALFUNC", "aggserialfn", own)?;
    function("DESERIALFUNC", "aggdeserialfn", own)?;
    function("MSFUNC", "aggmtransfn", own)?;
    function("MINVFUNC", "aggminvtransfn", own)?;
    function("MFINALFUNC", "aggmfinalfn", own)?;
    parts.insert(
        1,
        format!("STYPE = {}", catalogs.type_name(own.oid("aggtranstype"))?),
    );
    if own.oid("aggmtranstype") != 0 {
        parts.push(format!(
            "MSTYPE = {}",
            catalogs.type_name(own.oid("aggmtranstype"))?
        ));
    }
    for (word, column) in [("SSPACE", "aggtransspace"), ("MSSPACE", "aggmtransspace")] {
        if own.int(column) != 0 {
            parts.push(format!("{word} = {}", own.int(column)));
        }
    }
    for (word, column) in [("INITCOND", "agginitval"), ("MINITCOND", "aggminitval")] {
        if let Some(value) = own.text(column) {
            parts.push(format!("{word} = {}", literal(&value)));
        }
    }
    for (word, column) in [
        ("FINALFUNC_EXTRA", "aggfinalextra"),
        ("MFINALFUNC_EXTRA", "aggmfinalextra"),
    ] {
        if own.flag(column) {
            parts.push(word.into());
        }
    }
    let usual = if own.letter("aggkind") == 'n' {
        'r'
    } else {
        'w'
    };
    for (word, column, function) in [
        ("FINALFUNC_MODIFY", "aggfinalmodify", "aggfinalfn"),
        ("MFINALFUNC_MODIFY", "aggmfinalmodify", "aggmfinalfn"),
    ] {
        if own.letter(column) != usual && own.oid(function) != 0 {
            let value = match own.letter(column) {
                's' => "SHAREABLE",
                'w' => "READ_WRITE",
                _ => "READ_ONLY",
            };
            parts.push(format!("{word} = {value}"));
        }
    }
    if own.oid("aggsortop") != 0 {
        let operator = catalogs.operator_name(own.oid("aggsortop"))?;
        parts.push(format!("SORTOP = {operator}"));
    }
    if own.letter("aggkind") == 'h' {
        parts.push("HYPOTHETICAL".into());
    }
    match row.letter("proparallel") {
        's' => parts.push("PARALLEL = safe".into()),
        'r' => parts.push("PARALLEL = restricted".into()),
        _ => {}
    }
    let arguments = aggregate_arguments(catalogs, row)?;
    let parts = parts.join(",\n    ");
    Ok(format!(
        "CREATE AGGREGATE {name}({arguments}) (\n    {parts}\n);"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_lose_their_quotes() {
        assert_eq!(
            list_elements("\"$user\", public,\"a,b\""),
            ["$user", "public", "a,b"]
        );
        assert_eq!(list_elements("\"a\"\"b\", \"\""), ["a\"b", ""]);
    }
}
