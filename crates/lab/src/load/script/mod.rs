//! Scripts as pgbench writes them: `\set` with whole numbers, and SQL with `:variables`.
//!
//! ```text
//! \set account random(1, 100000 * :scale)            slot 1 ◄─ expression over slot 0
//! SELECT abalance FROM accounts WHERE id = :account;  text, slot 1, text
//! ```
//!
//! A script is read once; every variable becomes a numbered slot, so that a client keeps only a
//! list of numbers. What pgbench knows beyond that is refused with its line and column. The model
//! is `src/bin/pgbench/pgbench.c` (`ParseScript`, `parseQuery`) and `exprparse.y`. One difference
//! is said out loud: a variable inside quotes of any kind is an error here, because pgbench
//! replaces it in the simple protocol and not in the others.

mod cursor;
mod expression;
mod parse;
mod random;
mod scan;
mod template;

use std::collections::BTreeMap;

pub(crate) use expression::Expression;
pub(crate) use random::Random;
pub use scan::statements;
pub(crate) use scan::without_comments;
pub(crate) use template::Template;

/// What every client has before the script begins: its number, counted from 0.
pub const CLIENT_ID: &str = "client_id";

/// A script that was understood.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) steps: Vec<Step>,
    /// First values of the slots: given variables, `client_id`, then what `\set` names.
    slots: Vec<i64>,
    client_slot: usize,
    given: BTreeMap<String, i64>,
    text: String,
}

/// One line of a script.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// `\set slot expression`
    Set { slot: usize, to: Expression },
    /// One SQL command.
    Sql(Template),
}

/// A script that was not understood: where and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, column, why } = self;
        write!(f, "line {line}, column {column}: {why}")
    }
}

impl std::error::Error for SyntaxError {}

impl Script {
    /// Reads a script. `given` are variables that hold before its first line, such as `scale`.
    pub fn parse(text: &str, given: &BTreeMap<String, i64>) -> Result<Self, SyntaxError> {
        parse::script(text, given)
    }

    /// The script as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables that hold before its first line.
    pub fn given(&self) -> &BTreeMap<String, i64> {
        &self.given
    }

    /// How many SQL commands one round sends.
    pub fn statements(&self) -> usize {
        let sql = self
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Sql(_)));
        sql.count()
    }

    /// The slots with which client number `client` begins.
    pub(crate) fn slots(&self, client: u32) -> Vec<i64> {
        let mut slots = self.slots.clone();
        if let Some(own) = slots.get_mut(self.client_slot) {
            *own = i64::from(client);
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, SyntaxError> {
        Script::parse(text, &BTreeMap::from([("scale".to_owned(), 3)]))
    }

    fn refused(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn the_script_of_pgbench_itself_is_understood() {
        let script = parse(
            "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
             UPDATE a SET b = b + :delta WHERE aid = :aid;\nSELECT b FROM a\n  WHERE aid = :aid;\nEND;\n",
        )
        .expect("a script");
        assert_eq!(script.statements(), 4);
        assert_eq!(script.slots(7), [3, 7, 0, 0]);
    }

    #[test]
    fn errors_have_a_place_and_a_reason() {
        let cases = [
            (
                "SELECT :who;",
                "line 1, column 8: no variable :who is set before this",
            ),
            (
                "\n\\sleep 1\n",
                "line 2, column 1: \\sleep is not known here: only \\set is",
            ),
            (
                "\\set x 1 +",
                "line 1, column 11: a number, a variable or ( is missing here",
            ),
            (
                "\\set x 1 1",
                "line 1, column 10: nothing more is understood after this expression",
            ),
            (
                "\\set x sqrt(4)",
                "line 1, column 8: sqrt is not known here: only random(low, high) is",
            ),
            ("\\set x random(1)", "line 1, column 16: , is missing here"),
            (
                "\\set x 1.5",
                "line 1, column 9: only whole numbers are known here",
            ),
            (
                "SELECT 'it;",
                "line 1, column 8: this quote is never closed",
            ),
            (
                "SELECT $a$ x $b$;",
                "line 1, column 8: this quote is never closed",
            ),
            (
                "SELECT 1 \\gset\n",
                "line 1, column 10: \\ within an SQL command: end the command with ; first",
            ),
            (
                "SELECT ':scale';",
                "line 1, column 9: :scale stands inside quotes, where pgbench replaces it in the simple protocol only",
            ),
            (
                "-- nothing\n",
                "line 2, column 1: the script has no SQL command",
            ),
            (
                "SELECT \"t_:scale\";",
                "line 1, column 11: :scale stands inside quotes",
            ),
            (
                "DO $$\nBEGIN PERFORM :scale; END $$;",
                "line 2, column 15: :scale stands inside quotes",
            ),
            (
                "SELECT E'\\':scale';",
                "line 1, column 12: :scale stands inside quotes",
            ),
            ("\\set 1x 2", "line 1, column 6: a name is missing here"),
            (
                "\\set x 9223372036854775808",
                "line 1, column 8: 9223372036854775808 does not fit into 64 bits",
            ),
            (
                "\\set x -9223372036854775809",
                "line 1, column 9: 9223372036854775809 does not fit into 64 bits",
            ),
        ];
        for (text, expected) in cases {
            assert!(
                refused(text).starts_with(expected),
                "{text}: {}",
                refused(text)
            );
        }
    }

    #[test]
    fn what_is_quoted_a_cast_or_a_comment_is_no_variable() {
        let text = "SELECT '12:30:00'::time, E'\\':no', \"a:b\", $$ :no $$, x[1:2] /* :no ; */ -- :no ;\n FROM t;";
        let script = parse(text).expect("a script");
        assert_eq!(script.statements(), 1);
        let [Step::Sql(template)] = script.steps.as_slice() else {
            panic!("{script:?}")
        };
        assert!(template.slots().is_empty());
    }

    #[test]
    fn casts_inside_quotes_are_no_variables_though_their_types_are_called_so() {
        let text = "SELECT $$ 'a'::scale $$, '1::scale', \"scale:\";";
        assert_eq!(parse(text).expect("a script").statements(), 1);
    }

    #[test]
    fn bodies_of_functions_are_one_command_and_commands_have_any_case() {
        let text = "\\SET low -9223372036854775808\nCREATE FUNCTION f() RETURNS bigint BEGIN ATOMIC SELECT 1; SELECT 2; END;\nSELECT :low;";
        let script = parse(text).expect("a script");
        assert_eq!(script.statements(), 2);
        let Some(Step::Set { to, .. }) = script.steps.first() else {
            panic!("{script:?}")
        };
        assert_eq!(to.value(&[], &mut Random::new(1, 0)), Ok(i64::MIN));
    }

    #[test]
    fn long_nests_are_refused_not_followed() {
        let text = format!("\\set x {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(refused(&text).contains("nested too deeply"));
    }
}
