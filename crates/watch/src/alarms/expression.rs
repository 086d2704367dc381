//! The part of PromQL in which the alerts of the register are written, so that they are judged by
//! the same words without a Prometheus.
//!
//! ```text
//! expression := comparison (("and" | "or" | "unless") matching? comparison)*
//! comparison := sum ((">" | "<" | ">=" | "<=" | "==") matching? sum)?
//! sum        := product (("+" | "-") matching? product)*
//! product    := primary (("*" | "/") matching? primary)*
//! primary    := number | "(" expression ")" | function | aggregation | selector
//! selector   := name ("{" label "=" string, … "}")? ("[" duration "]")? ("offset" duration)?
//! matching   := "on" "(" labels ")" ("group_left" "(" ")")?
//! ```

/// Nested so deep at most; the expressions are our own.
const DEPTH_MAX: usize = 32;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Time,
    Selector(Selector),
    /// A function of a range, with a number where it takes one.
    OverTime(OverTime, Selector, f64),
    /// `sum by (server) (…)`.
    By(Aggregate, Vec<String>, Box<Expression>),
    Binary(Operator, Matching, Box<Expression>, Box<Expression>),
}

/// Series of one metric.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Selector {
    pub(super) metric: String,
    pub(super) labels: Vec<(String, String)>,
    /// Seconds; 0 for what is now.
    pub(super) range_s: f64,
    pub(super) offset_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverTime {
    Increase,
    Rate,
    Changes,
    Average,
    Slope,
    Forecast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregate {
    Sum,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Greater,
    Less,
    AtLeast,
    AtMost,
    Equal,
    And,
    Or,
    Unless,
}

/// How series of both sides find each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Matching {
    /// By these labels; by all of them where it is absent.
    pub(super) on: Option<Vec<String>>,
    /// Several of the left side may have one of the right side.
    pub(super) is_many_to_one: bool,
}

/// Reads an expression.
///
/// # Errors
/// It is not in this part of the language, with the place.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser {
        words: words(text)?,
        at: 0,
        depth: 0,
    };
    let own = parser.expression()?;
    match parser.peek() {
        "" => Ok(own),
        rest => Err(format!("{rest:?} stands after the end of {text:?}")),
    }
}

impl Expression {
    /// Every selector in it.
    pub(super) fn selectors(&self) -> Vec<&Selector> {
        match self {
            Expression::Number(_) | Expression::Time => Vec::new(),
            Expression::Selector(own) | Expression::OverTime(_, own, _) => vec![own],
            Expression::By(_, _, inner) => inner.selectors(),
            Expression::Binary(_, _, left, right) => [left.selectors(), right.selectors()].concat(),
        }
    }
}

fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word =
            |own: char| own.is_ascii_alphanumeric() || own == '_' || own == '.' || own == ':';
        let length = match first {
            '"' => rest.get(1..).and_then(|own| own.find('"')).map(|at| at + 2),
            '>' | '<' | '=' | '!' if rest.get(1..2) == Some("=") => Some(2),
            own if is_word(own) => Some(rest.find(|own| !is_word(own)).unwrap_or(rest.len())),
            own => Some(own.len_utf8()),
        };
        let split = length.and_then(|length| rest.split_at_checked(length));
        let (word, after) = split.ok_or_else(|| format!("a string without an end in {text:?}"))?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.words.get(self.at).copied().unwrap_or("")
    }

    fn next(&mut self) -> &'a str {
        let own = self.peek();
        self.at += 1;
        own
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.peek() == word;
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next() {
            own if own == word => Ok(()),
            own => Err(format!("{word:?} was expected, not {own:?}")),
        }
    }

    fn expression(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        let own = self.chain(
            &[
                ("and", Operator::And),
                ("or", Operator::Or),
                ("unless", Operator::Unless),
            ],
            Self::comparison,
        );
        self.depth -= 1;
        own
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        const COMPARISONS: &[(&str, Operator)] = &[
            (">", Operator::Greater),
            ("<", Operator::Less),
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            ("==", Operator::Equal),
        ];
        self.chain(COMPARISONS, Self::sum)
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain(
            &[("+", Operator::Plus), ("-", Operator::Minus)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain(
            &[("*", Operator::Times), ("/", Operator::Over)],
            Self::primary,
        )
    }

    /// Operators of one strength, from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        part: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut left = part(self)?;
        loop {
            let word = self.peek();
            let Some((_, operator)) = operators.iter().find(|(own, _)| *own == word) else {
                return Ok(left);
            };
            self.at += 1;
            let matching = self.matching()?;
            let right = part(self)?;
            left = Expression::Binary(*operator, matching, Box::new(left), Box::new(right));
        }
    }

    fn matching(&mut self) -> Result<Matching, String> {
        let mut own = Matching::default();
        if self.takes("on") {
            own.on = Some(self.names()?);
        }
        if self.takes("group_left") {
            self.names()?;
            own.is_many_to_one = true;
        }
        Ok(own)
    }

    fn names(&mut self) -> Result<Vec<String>, String> {
        self.expect("(")?;
        let mut names = Vec::new();
        while !self.takes(")") {
            match self.next() {
                "," => {}
                "" => return Err("a list of labels has no end".to_owned()),
                name => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    fn primary(&mut self) -> Result<Expression, String> {
        let word = self.next();
        if word == "(" {
            let own = self.expression()?;
            self.expect(")")?;
            return Ok(own);
        }
        if let Ok(number) = word.parse::<f64>() {
            return Ok(Expression::Number(number));
        }
        let over_time = match word {
            "increase" => OverTime::Increase,
            "rate" => OverTime::Rate,
            "changes" => OverTime::Changes,
            "avg_over_time" => OverTime::Average,
            "deriv" => OverTime::Slope,
            "predict_linear" => OverTime::Forecast,
            "time" => {
                self.expect("(")?;
                self.expect(")")?;
                return Ok(Expression::Time);
            }
            "sum" => return self.aggregation(Aggregate::Sum),
            "max" => return self.aggregation(Aggregate::Max),
            metric => return Ok(Expression::Selector(self.selector(metric)?)),
        };
        self.expect("(")?;
        let metric = self.next();
        let selector = self.selector(metric)?;
        if selector.range_s <= 0.0 {
            return Err(format!("{word} needs a range"));
        }
        let number = if self.takes(",") {
            self.constant()?
        } else {
            0.0
        };
        self.expect(")")?;
        Ok(Expression::OverTime(over_time, selector, number))
    }

    /// `7 * 86400`.
    fn constant(&mut self) -> Result<f64, String> {
        let mut product = 1.0;
        loop {
            let word = self.next();
            let number: f64 = word
                .parse()
                .map_err(|_| format!("{word:?} is not a number"))?;
            product *= number;
            if !self.takes("*") {
                return Ok(product);
            }
        }
    }

    fn aggregation(&mut self, own: Aggregate) -> Result<Expression, String> {
        self.expect("by")?;
        let labels = self.names()?;
        self.expect("(")?;
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(Expression::By(own, labels, Box::new(inner)))
    }

    fn selector(&mut self, metric: &str) -> Result<Selector, String> {
        if !metric.starts_with(|own: char| own.is_ascii_alphabetic()) {
            return Err(format!("{metric:?} is not a metric"));
        }
        let mut own = Selector {
            metric: metric.to_owned(),
            ..Selector::default()
        };
        if self.takes("{") {
            while !self.takes("}") {
                let label = self.next().to_owned();
                self.expect("=")?;
                let value = self.next().trim_matches('"').to_owned();
                own.labels.push((label, value));
                self.takes(",");
                if self.peek().is_empty() {
                    return Err("labels have no end".to_owned());
                }
            }
        }
        if self.takes("[") {
            own.range_s = duration(self.next())?;
            self.expect("]")?;
        }
        if self.takes("offset") {
            own.offset_s = duration(self.next())?;
        }
        Ok(own)
    }
}

/// `15m` in seconds.
pub(super) fn duration(text: &str) -> Result<f64, String> {
    let unit = match text.chars().last() {
        Some('s') => 1.0,
        Some('m') => 60.0,
        Some('h') => 3600.0,
        Some('d') => 86_400.0,
        _ => return Err(format!("{text:?} is not a duration")),
    };
    let number = text.get(..text.len() - 1).unwrap_or_default();
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text:?} is not a duration"))?;
    Ok(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signs::signs;

    #[test]
    fn every_alert_of_the_register_is_understood() {
        for alert in signs().flat_map(|sign| sign.alerts) {
            let own = parse(alert.expression);
            assert!(own.is_ok(), "{}: {own:?}", alert.name);
            assert!(duration(alert.hold).is_ok() && duration(alert.keep).is_ok());
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "rate(a)",
            "a >",
            "histogram_quantile(0.9, a)",
            "a{b=\"c",
            "(a",
            "sum(a)",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"(".repeat(100)).is_err());
    }
}
