//! Columns of a query, what refers to them (ORDER BY, GROUP BY, windows), and windows.

use super::super::refusal::{Refusal, Written};
use super::constant::Label;
use super::query::Names;
use super::scope::Standing;
use super::tree::{Node, Value};
use super::writer::{Casts, STEP, Writer};

/// How ORDER BY names a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Naming {
    ByExpression,
    ByNumber,
}

impl<'n> Writer<'n> {
    pub(super) fn target_list(
        &mut self,
        targets: &[&'n Node],
        result: Option<&[String]>,
        names: Names,
    ) -> Written {
        let mut was_long = false;
        let shown = targets.iter().filter(|target| !target.flag("resjunk"));
        for (at, target) in shown.enumerate() {
            self.put(if at > 0 { ", " } else { " " });
            let own = result.and_then(|names| names.get(at)).map(String::as_str);
            let name = own.or(target.text("resname"));
            let text = self.aside(|writer| writer.target(target, name, names))?;
            let text_begins_anew = text.starts_with('\n');
            if text_begins_anew {
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
            } else if at > 0 && (!text.is_empty() || was_long) {
                self.keyword("", -STEP, STEP, 4);
            }
            was_long = text
                .get(usize::from(text_begins_anew)..)
                .is_some_and(|rest| rest.contains('\n'));
            self.put(&text);
        }
        Ok(())
    }

    /// An expression and, where it does not bring its name along, `AS name`.
    fn target(&mut self, target: &'n Node, name: Option<&str>, names: Names) -> Written {
        let refusal = || Refusal("a column of a query is empty".into());
        let expression = target.node("expr").ok_or_else(refusal)?;
        let own = if expression.tag == "VAR" {
            self.variable(expression, Standing::Alone)?
        } else {
            self.node(expression, Casts::All)?;
            (names == Names::Hidden).then(|| "?column?".to_owned())
        };
        if let Some(name) = name.filter(|name| own.as_deref() != Some(*name)) {
            self.put(" AS ");
            self.put_name(name);
        }
        Ok(())
    }

    /// What a sort or group clause refers to.
    fn sort_reference(
        &mut self,
        reference: i64,
        targets: &[&'n Node],
        naming: Naming,
    ) -> Written<&'n Node> {
        let target = targets
            .iter()
            .find(|target| target.int("ressortgroupref") == reference);
        let refusal = || Refusal("a clause refers to no column of its query".into());
        let target = target.filter(|_| reference != 0).ok_or_else(refusal)?;
        let expression = target.node("expr").ok_or_else(refusal)?;
        if naming == Naming::ByNumber {
            self.put(&target.int("resno").to_string());
            return Ok(expression);
        }
        match expression.tag.as_str() {
            "CONST" => self.constant(expression, Label::Always)?,
            "FUNCEXPR" | "AGGREF" | "WINDOWFUNC" | "JSONCONSTRUCTOREXPR" => {
                self.put("(");
                self.node(expression, Casts::All)?;
                self.put(")");
            }
            _ => self.node(expression, Casts::All)?,
        }
        Ok(expression)
    }

    pub(super) fn sort_references(
        &mut self,
        clauses: &[&'n Node],
        targets: &[&'n Node],
    ) -> Written {
        for (at, clause) in clauses.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            let reference = clause.int("tleSortGroupRef");
            self.sort_reference(reference, targets, Naming::ByExpression)?;
        }
        Ok(())
    }

    pub(super) fn order_by(
        &mut self,
        order: &'n [Value],
        targets: &[&'n Node],
        naming: Naming,
    ) -> Written {
        for (at, clause) in order.iter().filter_map(Value::node).enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.sort_reference(clause.int("tleSortGroupRef"), targets, naming)?;
            let operator = clause.oid("sortop");
            let words = match (self.sort_direction(operator), clause.flag("nulls_first")) {
                (Some(Direction::Up), false) => "".into(),
                (Some(Direction::Up), true) => " NULLS FIRST".into(),
                (Some(Direction::Down), true) => " DESC".into(),
                (Some(Direction::Down), false) => " DESC NULLS LAST".into(),
                (None, first) => {
                    let name = self.names.operator_name(operator)?;
                    let nulls = if first { "FIRST" } else { "LAST" };
                    format!(" USING {name} NULLS {nulls}")
                }
            };
            self.put(&words);
        }
        Ok(())
    }

    /// Whether an operator is `<` or `>` of a default operator class for btree.
    fn sort_direction(&self, operator: u32) -> Option<Direction> {
        const BTREE: u32 = 403;
        let members = self.names.rows("pg_amop", "amopopr", operator);
        members.into_iter().find_map(|row| {
            let family = row.oid("amopfamily");
            let classes = self.names.rows("pg_opclass", "opcfamily", family);
            let is_default = classes.iter().any(|class| class.flag("opcdefault"));
            let is_tree = row.oid("amopmethod") == BTREE && row.letter("amoppurpose") == 's';
            match row.int("amopstrategy") {
                1 if is_default && is_tree => Some(Direction::Up),
                5 if is_default && is_tree => Some(Direction::Down),
                _ => None,
            }
        })
    }

    pub(super) fn group_by(&mut self, query: &'n Node) -> Written {
        let (plain, sets) = (query.nodes("groupClause"), query.nodes("groupingSets"));
        if plain.is_empty() && sets.is_empty() {
            return Ok(());
        }
        let targets = query.nodes("targetList");
        self.keyword(" GROUP BY ", -STEP, STEP, 1);
        self.put(if query.flag("groupDistinct") {
            "DISTINCT "
        } else {
            ""
        });
        self.grouping = true;
        if sets.is_empty() {
            self.sort_references(&plain, &targets)?;
        }
        for (at, set) in sets.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.grouping_set(set, &targets, Parens::IfNeeded)?;
        }
        self.grouping = false;
        Ok(())
    }

    fn grouping_set(&mut self, set: &'n Node, targets: &[&'n Node], parens: Parens) -> Written {
        let inner = match set.int("kind") {
            0 => return self.done("()"),
            1 => return self.simple_grouping_set(set, targets, parens),
            2 => {
                self.put("ROLLUP(");
                Parens::IfNeeded
            }
            3 => {
                self.put("CUBE(");
                Parens::IfNeeded
            }
            4 => {
                self.put("GROUPING SETS (");
                Parens::Always
            }
            _ => return Err(Refusal("a grouping set of unknown kind".into())),
        };
        for (at, part) in set.nodes("content").iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.descend(|writer| writer.grouping_set(part, targets, inner))?;
        }
        self.done(")")
    }

    fn simple_grouping_set(
        &mut self,
        set: &'n Node,
        targets: &[&'n Node],
        parens: Parens,
    ) -> Written {
        let references = set.numbers("content");
        let wanted = parens == Parens::Always || references.len() != 1;
        self.parenthesised(wanted, |writer| {
            for (at, reference) in references.iter().enumerate() {
                writer.put(if at > 0 { ", " } else { "" });
                writer.sort_reference(*reference, targets, Naming::ByExpression)?;
            }
            Ok(())
        })
    }

    pub(super) fn window_clause(&mut self, query: &'n Node) -> Written {
        let targets = query.nodes("targetList");
        let mut is_first = true;
        for window in query.nodes("windowClause") {
            let Some(name) = window.text("name") else {
                continue;
            };
            if is_first {
                self.keyword(" WINDOW ", -STEP, STEP, 1);
            } else {
                self.put(", ");
            }
            is_first = false;
            self.put_name(name);
            self.put(" AS ");
            self.window(window, &targets)?;
        }
        Ok(())
    }

    /// `(PARTITION BY … ORDER BY … ROWS …)`
    pub(super) fn window(&mut self, window: &'n Node, targets: &[&'n Node]) -> Written {
        let mut between = "";
        let refers = window.text("refname");
        self.put("(");
        if let Some(name) = refers {
            self.put_name(name);
            between = " ";
        }
        let partition = window.nodes("partitionClause");
        if !partition.is_empty() && refers.is_none() {
            self.put("PARTITION BY ");
            self.sort_references(&partition, targets)?;
            between = " ";
        }
        let order = window.list("orderClause");
        if !order.is_empty() && !window.flag("copiedOrder") {
            self.put(between);
            self.put("ORDER BY ");
            self.order_by(order, targets, Naming::ByExpression)?;
            between = " ";
        }
        if window.int("frameOptions") & 1 != 0 {
            self.put(between);
            self.frame(window)?;
        }
        self.done(")")
    }

    /// `FRAMEOPTION_…` in `parsenodes.h`.
    fn frame(&mut self, window: &'n Node) -> Written {
        let options = window.int("frameOptions");
        let has = |bit: i64| options & bit != 0;
        self.put(match (has(0x2), has(0x4), has(0x8)) {
            (true, _, _) => "RANGE ",
            (_, true, _) => "ROWS ",
            (_, _, true) => "GROUPS ",
            _ => return Err(Refusal("a window frame of unknown kind".into())),
        });
        self.put(if has(0x10) { "BETWEEN " } else { "" });
        self.frame_end(window, "startOffset", [0x20, 0x200, 0x800, 0x2000])?;
        if has(0x10) {
            self.put(" AND ");
            self.frame_end(window, "endOffset", [0x100, 0x400, 0x1000, 0x4000])?;
        }
        self.put(match (has(0x8000), has(0x10000), has(0x20000)) {
            (true, _, _) => " EXCLUDE CURRENT ROW",
            (_, true, _) => " EXCLUDE GROUP",
            (_, _, true) => " EXCLUDE TIES",
            _ => "",
        });
        Ok(())
    }

    fn frame_end(&mut self, window: &'n Node, field: &str, bits: [i64; 4]) -> Written {
        let options = window.int("frameOptions");
        let [unbounded, current, preceding, following] = bits.map(|bit| options & bit != 0);
        if unbounded {
            let side = if field == "startOffset" {
                "PRECEDING"
            } else {
                "FOLLOWING"
            };
            return self.done(&format!("UNBOUNDED {side}"));
        }
        if current {
            return self.done("CURRENT ROW");
        }
        if !preceding && !following {
            return Err(Refusal("a window frame has no end".into()));
        }
        self.field(window, field, Casts::Explicit)?;
        self.done(if preceding {
            " PRECEDING"
        } else {
            " FOLLOWING"
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parens {
    Always,
    IfNeeded,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Up,
    Down,
}
