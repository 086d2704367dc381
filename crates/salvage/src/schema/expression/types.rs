//! Types and collations of expressions; truth: `exprType`, `exprCollation` in
//! `src/backend/nodes/nodeFuncs.c`.

use pgclinic_format::Oid;

use super::super::catalog::Catalogs;
use super::super::refusal::{Refusal, Written};
use super::tree::Node;

const BOOL: Oid = 16;
const INT4: Oid = 23;
const TEXT: Oid = 25;
const XML: Oid = 142;
const RECORD: Oid = 2249;
/// Nodes that only pass the type of another one on.
const STEPS_MAX: usize = 300;

/// The type of an expression.
pub(super) fn type_of(catalogs: &Catalogs<'_>, node: &Node) -> Written<Oid> {
    let mut node = node;
    for _ in 0..STEPS_MAX {
        let passes_on = match node.tag.as_str() {
            "NAMEDARGEXPR" | "COLLATEEXPR" => node.node("arg"),
            "JSONVALUEEXPR" => node.node("formatted_expr"),
            "RETURNINGEXPR" => node.node("retexpr"),
            "INFERENCEELEM" => node.node("expr"),
            _ => return own_type(catalogs, node),
        };
        node = passes_on.ok_or_else(|| Refusal(format!("a {} is empty", node.tag)))?;
    }
    Err(Refusal(
        "the type of an expression is not to be found".into(),
    ))
}

fn own_type(catalogs: &Catalogs<'_>, node: &Node) -> Written<Oid> {
    let field = match node.tag.as_str() {
        "VAR" => "vartype",
        "CONST" => "consttype",
        "PARAM" => "paramtype",
        "AGGREF" => "aggtype",
        "WINDOWFUNC" => "wintype",
        "FUNCEXPR" => "funcresulttype",
        "OPEXPR" | "DISTINCTEXPR" | "NULLIFEXPR" => "opresulttype",
        "FIELDSELECT" | "FIELDSTORE" | "RELABELTYPE" | "COERCEVIAIO" | "ARRAYCOERCEEXPR"
        | "CONVERTROWTYPEEXPR" | "COERCETODOMAIN" => "resulttype",
        "CASEEXPR" => "casetype",
        "ARRAYEXPR" => "array_typeid",
        "ROWEXPR" => "row_typeid",
        "COALESCEEXPR" => "coalescetype",
        "MINMAXEXPR" => "minmaxtype",
        "SQLVALUEFUNCTION" => "type",
        "CASETESTEXPR" | "COERCETODOMAINVALUE" | "SETTODEFAULT" | "NEXTVALUEEXPR" => "typeId",
        "SUBSCRIPTINGREF" => return Ok(subscript_type(node)),
        "SUBLINK" => return sublink_type(catalogs, node),
        "GROUPINGFUNC" => return Ok(INT4),
        "XMLEXPR" => return Ok(xml_type(node)),
        "JSONCONSTRUCTOREXPR" => return Ok(json_type(node)),
        "MERGESUPPORTFUNC" => return Ok(TEXT),
        "SCALARARRAYOPEXPR" | "BOOLEXPR" | "ROWCOMPAREEXPR" | "NULLTEST" | "BOOLEANTEST"
        | "CURRENTOFEXPR" | "JSONISPREDICATE" => return Ok(BOOL),
        other => return Err(Refusal(format!("the type of a {other} is not known here"))),
    };
    Ok(node.oid(field))
}

fn subscript_type(node: &Node) -> Oid {
    match node.oid("refrestype") {
        // Before 14: a slice has the type of the whole.
        0 if node.list("reflowerindexpr").is_empty() && node.field("refassgnexpr").is_none() => {
            node.oid("refelemtype")
        }
        0 => node.oid("refcontainertype"),
        known => known,
    }
}

fn sublink_type(catalogs: &Catalogs<'_>, node: &Node) -> Written<Oid> {
    const EXPRESSION: i64 = 4;
    const ARRAY: i64 = 6;
    let kind = node.int("subLinkType");
    if kind != EXPRESSION && kind != ARRAY {
        return Ok(if kind == 5 { RECORD } else { BOOL });
    }
    let targets = node
        .node("subselect")
        .map(|query| query.nodes("targetList"));
    let target = targets.and_then(|targets| targets.first()?.node("expr"));
    let target = target.ok_or_else(|| Refusal("a sub-select has no columns".into()))?;
    // Trees are bounded in depth, and so is this.
    let oid = type_of(catalogs, target)?;
    if kind == EXPRESSION {
        return Ok(oid);
    }
    let row = catalogs.row("pg_type", oid);
    Ok(row.map_or(0, |row| row.oid("typarray")))
}

fn xml_type(node: &Node) -> Oid {
    match node.int("op") {
        // IS_DOCUMENT, IS_XMLSERIALIZE
        7 => BOOL,
        6 => TEXT,
        _ => XML,
    }
}

fn json_type(node: &Node) -> Oid {
    let returning = node.node("returning");
    returning.map_or(0, |returning| returning.oid("typid"))
}

/// A composite type, or `record`.
pub(super) fn is_row_type(catalogs: &Catalogs<'_>, oid: Oid) -> bool {
    let mut oid = oid;
    // Domains over domains over a composite type.
    for _ in 0..32 {
        let Some(row) = catalogs.row("pg_type", oid) else {
            return oid == RECORD;
        };
        match row.letter("typtype") {
            'c' => return true,
            'd' => oid = row.oid("typbasetype"),
            _ => return oid == RECORD,
        }
    }
    false
}

/// The expression below casts that nobody wrote.
pub(super) fn without_implicit_casts(node: &Node) -> &Node {
    let mut node = node;
    for _ in 0..STEPS_MAX {
        let format = match node.tag.as_str() {
            "RELABELTYPE" => "relabelformat",
            "COERCEVIAIO" | "ARRAYCOERCEEXPR" => "coerceformat",
            "CONVERTROWTYPEEXPR" => "convertformat",
            "COERCETODOMAIN" => "coercionformat",
            "FUNCEXPR" => "funcformat",
            _ => return node,
        };
        if node.int(format) != super::node::IMPLICIT_CAST {
            return node;
        }
        let inner = node.node("arg");
        match inner.or_else(|| node.nodes("args").first().copied()) {
            Some(inner) => node = inner,
            None => return node,
        }
    }
    node
}

/// The collation of an expression.
pub(super) fn collation_of(node: &Node) -> Oid {
    let fields = [
        "varcollid",
        "constcollid",
        "paramcollid",
        "aggcollid",
        "wincollid",
        "refcollid",
        "funccollid",
        "opcollid",
        "resultcollid",
        "collOid",
        "casecollid",
        "array_collid",
        "coalescecollid",
        "minmaxcollid",
        "collation",
    ];
    let mut known = fields.into_iter().map(|field| node.oid(field));
    known.find(|oid| *oid != 0).unwrap_or(0)
}
