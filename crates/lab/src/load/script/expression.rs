//! The expressions of `\set`: whole numbers, variables, `+ - * / %`, parentheses and `random(low,
//! high)`.

use super::cursor::Cursor;
use super::parse::Names;
use super::{Random, SyntaxError};

/// How deep parentheses may nest.
const DEPTH_MAX: u32 = 50;

/// An expression over slots.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    Number(i64),
    Slot(usize),
    Random(Box<[Expression; 2]>),
    Two(Operator, Box<[Expression; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
}

/// An expression without a value, with the SQLSTATE that the server gives to the same mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoValue {
    pub(crate) sqlstate: &'static str,
    pub(crate) why: &'static str,
}

const OUT_OF_RANGE: NoValue = NoValue {
    sqlstate: "22003",
    why: "a number of the script is out of range",
};
const DIVISION_BY_ZERO: NoValue = NoValue {
    sqlstate: "22012",
    why: "the script divides by zero",
};
const EMPTY_RANGE: NoValue = NoValue {
    sqlstate: "22023",
    why: "random() of the script has a lower bound above its upper bound",
};

impl Expression {
    /// Reads one expression; what follows it is left to the caller.
    pub(super) fn parse(cursor: &mut Cursor<'_>, names: &Names) -> Result<Self, SyntaxError> {
        sum(cursor, names, 0)
    }

    /// The value over these slots.
    pub(crate) fn value(&self, slots: &[i64], random: &mut Random) -> Result<i64, NoValue> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Slot(slot) => Ok(slots.get(*slot).copied().unwrap_or_default()),
            Self::Random(bounds) => {
                let [low, high] = bounds.as_ref();
                let (low, high) = (low.value(slots, random)?, high.value(slots, random)?);
                if low > high {
                    return Err(EMPTY_RANGE);
                }
                Ok(random.between(low, high))
            }
            Self::Two(operator, sides) => {
                let [left, right] = sides.as_ref();
                let (left, right) = (left.value(slots, random)?, right.value(slots, random)?);
                operator.apply(left, right)
            }
        }
    }
}

impl Operator {
    fn apply(self, left: i64, right: i64) -> Result<i64, NoValue> {
        let value = match self {
            Self::Plus => left.checked_add(right),
            Self::Minus => left.checked_sub(right),
            Self::Times => left.checked_mul(right),
            Self::Divide | Self::Remainder if right == 0 => return Err(DIVISION_BY_ZERO),
            Self::Divide => left.checked_div(right),
            Self::Remainder => Some(left.wrapping_rem(right)),
        };
        value.ok_or(OUT_OF_RANGE)
    }
}

fn blank(cursor: &mut Cursor<'_>) {
    cursor.take_while(char::is_whitespace);
}

fn sum(cursor: &mut Cursor<'_>, names: &Names, depth: u32) -> Result<Expression, SyntaxError> {
    let mut left = product(cursor, names, depth)?;
    loop {
        let operator = match cursor.peek() {
            Some('+') => Operator::Plus,
            Some('-') => Operator::Minus,
            _ => return Ok(left),
        };
        cursor.next();
        let right = product(cursor, names, depth)?;
        left = Expression::Two(operator, Box::new([left, right]));
    }
}

fn product(cursor: &mut Cursor<'_>, names: &Names, depth: u32) -> Result<Expression, SyntaxError> {
    let mut left = factor(cursor, names, depth)?;
    loop {
        let operator = match cursor.peek() {
            Some('*') => Operator::Times,
            Some('/') => Operator::Divide,
            Some('%') => Operator::Remainder,
            _ => return Ok(left),
        };
        cursor.next();
        let right = factor(cursor, names, depth)?;
        left = Expression::Two(operator, Box::new([left, right]));
    }
}

/// A factor and the blanks around it.
fn factor(cursor: &mut Cursor<'_>, names: &Names, depth: u32) -> Result<Expression, SyntaxError> {
    if depth > DEPTH_MAX {
        return Err(cursor.error("this is nested too deeply"));
    }
    blank(cursor);
    let found = match cursor.peek() {
        Some('-') => {
            cursor.next();
            blank(cursor);
            match cursor.peek() {
                // The smallest number has no positive one to be taken from.
                Some(digit) if digit.is_ascii_digit() => number(cursor, "-")?,
                _ => {
                    let inner = factor(cursor, names, depth + 1)?;
                    Expression::Two(Operator::Minus, Box::new([Expression::Number(0), inner]))
                }
            }
        }
        Some('(') => {
            cursor.next();
            let inner = sum(cursor, names, depth + 1)?;
            expect(cursor, ')')?;
            inner
        }
        Some(':') => variable(cursor, names)?,
        Some(digit) if digit.is_ascii_digit() => number(cursor, "")?,
        Some(letter) if letter.is_alphabetic() => function(cursor, names, depth)?,
        _ => return Err(cursor.error("a number, a variable or ( is missing here")),
    };
    blank(cursor);
    Ok(found)
}

fn variable(cursor: &mut Cursor<'_>, names: &Names) -> Result<Expression, SyntaxError> {
    let at = *cursor;
    cursor.next();
    let name = cursor.name();
    let slot = names.slot(name);
    slot.map(Expression::Slot)
        .ok_or_else(|| names.unset(&at, name))
}

/// Digits behind this sign.
fn number(cursor: &mut Cursor<'_>, sign: &str) -> Result<Expression, SyntaxError> {
    let at = *cursor;
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    if cursor
        .peek()
        .is_some_and(|c| c == '.' || c == 'e' || c == 'E')
    {
        return Err(cursor.error("only whole numbers are known here"));
    }
    let number = format!("{sign}{digits}").parse();
    number
        .map(Expression::Number)
        .map_err(|_| at.error(format!("{digits} does not fit into 64 bits")))
}

fn function(cursor: &mut Cursor<'_>, names: &Names, depth: u32) -> Result<Expression, SyntaxError> {
    let at = *cursor;
    let name = cursor.name();
    if !name.eq_ignore_ascii_case("random") {
        return Err(at.error(format!(
            "{name} is not known here: only random(low, high) is"
        )));
    }
    blank(cursor);
    expect(cursor, '(')?;
    let low = sum(cursor, names, depth + 1)?;
    expect(cursor, ',')?;
    let high = sum(cursor, names, depth + 1)?;
    expect(cursor, ')')?;
    Ok(Expression::Random(Box::new([low, high])))
}

fn expect(cursor: &mut Cursor<'_>, wanted: char) -> Result<(), SyntaxError> {
    if cursor.peek() != Some(wanted) {
        return Err(cursor.error(format!("{wanted} is missing here")));
    }
    cursor.next();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i64, NoValue> {
        let mut names = Names::default();
        names.add("scale");
        let expression = Expression::parse(&mut Cursor::new(text), &names).expect(text);
        expression.value(&[10], &mut Random::new(1, 0))
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        let cases = [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("7 - 2 - 1", 4),
            ("-:scale + 100000*:scale", 999_990),
            ("7 / 2 % 2", 1),
            ("- - 3", 3),
            ("-7 / 2", -3),
            ("- 9223372036854775808", i64::MIN),
            ("5 - -3", 8),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_has_the_servers_code() {
        assert_eq!(value("1 / 0").unwrap_err().sqlstate, "22012");
        assert_eq!(
            value("9223372036854775807 + 1").unwrap_err().sqlstate,
            "22003"
        );
        assert_eq!(value("random(2, 1)").unwrap_err().sqlstate, "22023");
        assert_eq!(value("(0 - 9223372036854775807 - 1) % -1"), Ok(0));
    }

    #[test]
    fn random_keeps_to_its_bounds_and_reaches_both() {
        let seen: std::collections::BTreeSet<i64> = {
            let names = Names::default();
            let expression = Expression::parse(&mut Cursor::new("random(1, 3)"), &names).unwrap();
            let mut random = Random::new(5, 0);
            (0..200)
                .map(|_| expression.value(&[], &mut random).unwrap())
                .collect()
        };
        assert_eq!(seen, [1, 2, 3].into());
    }
}
