//! Where SQL text gathers, with the indentation that the server gives it.

use super::super::catalog::Catalogs;
use super::super::refusal::{Refusal, Written};
use super::scope::Scope;
use super::tree::{Node, Value};

/// Expressions and queries inside each other; the text of a tree may not nest deeper either.
const DEPTH_MAX: usize = 300;
/// The longest text of one statement.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Beyond this column indentation wraps around.
const INDENT_MAX: i64 = 40;
/// One level of indentation.
pub(super) const STEP: i64 = 8;

/// Which casts are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Casts {
    /// Those that nobody wrote too, because the parser might not add them again.
    All,
    /// Those that somebody wrote.
    Explicit,
}

/// Writes one statement or expression.
pub(super) struct Writer<'n> {
    pub(super) names: &'n Catalogs<'n>,
    pub(super) out: String,
    pub(super) indent: i64,
    /// The queries around, the innermost last.
    pub(super) scopes: Vec<Scope<'n>>,
    /// The windows of the current query, and the targets that they refer to.
    pub(super) windows: Vec<&'n Node>,
    pub(super) window_targets: Vec<&'n Node>,
    /// Columns are written with the name of their relation.
    pub(super) prefix: bool,
    /// Inside GROUP BY, where `cube` and `rollup` mean something else.
    pub(super) grouping: bool,
    /// Name and argument names of the function whose body is written.
    pub(super) arguments: Option<(String, Vec<String>)>,
    depth: usize,
}

impl<'n> Writer<'n> {
    pub(super) fn new(names: &'n Catalogs<'_>) -> Self {
        Writer {
            names,
            out: String::new(),
            indent: 0,
            scopes: Vec::new(),
            windows: Vec::new(),
            window_targets: Vec::new(),
            prefix: false,
            grouping: false,
            arguments: None,
            depth: 0,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A name, quoted where needed.
    pub(super) fn put_name(&mut self, name: &str) {
        let name = self.names.quoted(name);
        self.out.push_str(&name);
    }

    /// A key word on a line of its own: `before` and `after` change the indentation, `plus` is for
    /// this line.
    pub(super) fn keyword(&mut self, word: &str, before: i64, after: i64, plus: i64) {
        self.indent += before;
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.out.push('\n');
        let columns = if self.indent < INDENT_MAX {
            self.indent.max(0) + plus
        } else {
            (INDENT_MAX + (self.indent - INDENT_MAX) / (STEP / 2)) % INDENT_MAX + plus
        };
        for _ in 0..columns {
            self.out.push(' ');
        }
        self.out.push_str(word);
        self.indent = (self.indent + after).max(0);
    }

    /// One level deeper, if the limits allow it.
    pub(super) fn descend(&mut self, write: impl FnOnce(&mut Self) -> Written) -> Written {
        if self.depth >= DEPTH_MAX {
            return Err(Refusal(format!("it is nested deeper than {DEPTH_MAX}")));
        }
        if self.out.len() > TEXT_BYTES_MAX {
            return Err(Refusal("its text is too long".into()));
        }
        self.depth += 1;
        let done = write(self);
        self.depth -= 1;
        done
    }

    /// Writes aside, and gives what was written.
    pub(super) fn aside(&mut self, write: impl FnOnce(&mut Self) -> Written) -> Written<String> {
        let before = std::mem::take(&mut self.out);
        let done = write(self);
        let text = std::mem::replace(&mut self.out, before);
        done.map(|()| text)
    }

    /// A node, or the nodes of a list with commas between them.
    pub(super) fn value(&mut self, value: &'n Value, casts: Casts) -> Written {
        match value {
            Value::Node(node) => self.node(node, casts),
            Value::List(list) => self.list(list, casts),
            Value::Nothing => Ok(()),
            _ => Err(Refusal(
                "something stands where an expression belongs".into(),
            )),
        }
    }

    pub(super) fn list(&mut self, list: &'n [Value], casts: Casts) -> Written {
        for (index, value) in list.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.descend(|writer| writer.value(value, casts))?;
        }
        Ok(())
    }

    /// A field that must be there.
    pub(super) fn field(&mut self, node: &'n Node, field: &str, casts: Casts) -> Written {
        let value = node
            .field(field)
            .ok_or_else(|| Refusal(format!("a {} has no {field}", node.tag)))?;
        self.descend(|writer| writer.value(value, casts))
    }

    /// A column of the list, from 0, that must be there.
    pub(super) fn argument(&mut self, node: &'n Node, index: usize, casts: Casts) -> Written {
        let value = argument(node, index)?;
        self.descend(|writer| writer.value(value, casts))
    }
}

/// An element of `args` that must be there.
pub(super) fn argument(node: &Node, index: usize) -> Written<&Value> {
    node.list("args")
        .get(index)
        .ok_or_else(|| Refusal(format!("a {} has no argument {index}", node.tag)))
}

/// The node in a list that must be one.
pub(super) fn node_of(value: &Value) -> Written<&Node> {
    let refusal = || Refusal("something stands where a node belongs".into());
    value.node().ok_or_else(refusal)
}
