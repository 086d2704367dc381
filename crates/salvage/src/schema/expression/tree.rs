//! The text of a `pg_node_tree` as plain data: nodes with named fields, lists, words.
//!
//! ```text
//! {OPEXPR :opno 521 :args ({VAR :varno 1 :varattno 2 …} {CONST :constvalue 4 [ 0 0 0 0 0 0 0 0 ]}) :location 30}
//! ```
//!
//! Fields are found by name, so that a field which some majors do not write is simply absent. The
//! reader keeps a stack of its own and gives up at a depth and a size, whatever the text says.
//! Truth: `src/backend/nodes/{outfuncs,read}.c`.

/// Nodes and lists inside each other.
const DEPTH_MAX: usize = 300;
/// Nodes, lists and words of one tree.
const PARTS_MAX: usize = 4_000_000;

/// A value in a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `<>`
    Nothing,
    /// A number, a truth value, a name: whatever stands there as it is.
    Word(String),
    /// A string node, which stands between double quotes.
    Text(String),
    /// `(… …)`
    List(Vec<Value>),
    /// `(i 1 2)`, `(o 1 2)`, `(b 1 2)`
    Numbers(Vec<i64>),
    /// `4 [ 1 0 0 0 0 0 0 0 ]`: the bytes of a datum.
    Datum(Vec<u8>),
    /// `{TAG :field value …}`
    Node(Box<Node>),
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// `OPEXPR`, `VAR`, …
    pub(crate) tag: String,
    fields: Vec<(String, Value)>,
}

impl Value {
    /// The node, if it is one.
    pub(crate) fn node(&self) -> Option<&Node> {
        match self {
            Value::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Its elements, none if it is no list.
    pub(crate) fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            _ => &[],
        }
    }

    /// The text of a string node or word.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Word(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    /// A field.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != Value::Nothing)
    }

    /// A field that holds a node.
    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.field(name)?.node()
    }

    /// The elements of a field that holds a list.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.field(name).map(Value::list).unwrap_or_default()
    }

    /// The nodes of a field that holds a list of nodes.
    pub(crate) fn nodes(&self, name: &str) -> Vec<&Node> {
        self.list(name).iter().filter_map(Value::node).collect()
    }

    /// A field that holds a list of numbers or a set.
    pub(crate) fn numbers(&self, name: &str) -> &[i64] {
        match self.field(name) {
            Some(Value::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    /// The texts of a field that holds a list of strings.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.list(name).iter();
        list.map(|value| value.text().unwrap_or_default()).collect()
    }

    /// A text or name; nothing where it is null.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.field(name)?.text()
    }

    /// A number; 0 where it is absent.
    pub(crate) fn int(&self, name: &str) -> i64 {
        self.text(name)
            .and_then(|word| word.parse().ok())
            .unwrap_or(0)
    }

    /// An OID; 0 where it is absent.
    pub(crate) fn oid(&self, name: &str) -> u32 {
        u32::try_from(self.int(name)).unwrap_or(0)
    }

    /// A truth value; false where it is absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }
}

/// Reads the text of a tree; the error says what is wrong with it.
#[cfg(test)]
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    parse_within(text, PARTS_MAX)
}

/// Reads the text of a tree that has no more parts than memory allows.
pub(crate) fn parse_within(text: &str, parts_in_memory: usize) -> Result<Value, String> {
    let mut reader = Reader {
        words: Tokens { rest: text },
        stack: Vec::new(),
        parts: 0,
        parts_in_memory,
    };
    loop {
        if let Some(done) = reader.step()? {
            return Ok(done);
        }
    }
}

/// What is being put together.
enum Open {
    Node(Node, Option<String>),
    List(Vec<Value>),
}

struct Reader<'a> {
    words: Tokens<'a>,
    stack: Vec<Open>,
    parts: usize,
    parts_in_memory: usize,
}

impl Reader<'_> {
    /// Takes one word; gives the tree when it is complete.
    fn step(&mut self) -> Result<Option<Value>, String> {
        let word = self.words.next().ok_or("it ends too early")?;
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(format!("it has more than {PARTS_MAX} parts"));
        }
        if self.parts > self.parts_in_memory {
            let most = self.parts_in_memory;
            return Err(format!(
                "it has more than {most} parts, and --memory allows no more"
            ));
        }
        match word {
            "{" => {
                let tag = self.words.next().ok_or("a node has no name")?;
                let tag = long_tag(tag).to_owned();
                let fields = Vec::new();
                self.open(Open::Node(Node { tag, fields }, None))?;
                Ok(None)
            }
            "(" => match self.words.numbers()? {
                Some(numbers) => self.take(Value::Numbers(numbers)),
                None => self.open(Open::List(Vec::new())).map(|()| None),
            },
            "}" | ")" => self.close(word),
            _ => self.word(word),
        }
    }

    fn open(&mut self, open: Open) -> Result<(), String> {
        if self.stack.len() >= DEPTH_MAX {
            return Err(format!(
                "its nodes lie deeper than {DEPTH_MAX} in each other"
            ));
        }
        self.stack.push(open);
        Ok(())
    }

    fn close(&mut self, word: &str) -> Result<Option<Value>, String> {
        let value = match (self.stack.pop(), word) {
            (Some(Open::Node(node, None)), "}") => Value::Node(Box::new(node)),
            (Some(Open::List(list)), ")") => Value::List(list),
            _ => return Err("its brackets do not match".into()),
        };
        self.take(value)
    }

    fn word(&mut self, word: &str) -> Result<Option<Value>, String> {
        // Every field has a value, so that a name which begins with a colon is none of a field.
        if let (Some(Open::Node(_, field @ None)), Some(name)) =
            (self.stack.last_mut(), word.strip_prefix(':'))
        {
            *field = Some(name.to_owned());
            return Ok(None);
        }
        let value = match self.words.datum(word)? {
            Some(bytes) => Value::Datum(bytes),
            None => scalar(word),
        };
        self.take(value)
    }

    /// Puts a finished value where it belongs.
    fn take(&mut self, value: Value) -> Result<Option<Value>, String> {
        match self.stack.last_mut() {
            None => return Ok(Some(value)),
            Some(Open::List(list)) => list.push(value),
            // A second word of the same field is dropped: no field that is read here has one.
            Some(Open::Node(node, field)) => {
                if let Some(name) = field.take() {
                    node.fields.push((name, value));
                }
            }
        }
        Ok(None)
    }
}

/// Up to 14 some nodes have shorter names.
fn long_tag(tag: &str) -> &str {
    match tag {
        "CASE" => "CASEEXPR",
        "COLLATE" => "COLLATEEXPR",
        "WHEN" => "CASEWHEN",
        "ARRAY" => "ARRAYEXPR",
        "ROW" => "ROWEXPR",
        "ROWCOMPARE" => "ROWCOMPAREEXPR",
        "COALESCE" => "COALESCEEXPR",
        "MINMAX" => "MINMAXEXPR",
        "RTE" => "RANGETBLENTRY",
        other => other,
    }
}

fn scalar(word: &str) -> Value {
    if word == "<>" {
        return Value::Nothing;
    }
    if word == "\"\"" {
        return Value::Text(String::new());
    }
    let inner = word
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) => Value::Text(unescape(inner)),
        None => Value::Word(unescape(word)),
    }
}

fn unescape(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut escaped = false;
    for c in word.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(c);
            escaped = false;
        }
    }
    text
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// The next word: a bracket, or all up to a blank or bracket that no backslash stands before.
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start_matches([' ', '\n', '\t']);
        let first = rest.chars().next()?;
        let len = if matches!(first, '(' | ')' | '{' | '}') {
            1
        } else {
            word_len(rest)
        };
        let (word, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(word)
    }

    /// After `(`: the numbers of a list of integers, OIDs or a set, if it is one.
    fn numbers(&mut self) -> Result<Option<Vec<i64>>, String> {
        let before = self.rest;
        if !matches!(self.next(), Some("i" | "o" | "b" | "x")) {
            self.rest = before;
            return Ok(None);
        }
        let mut numbers = Vec::new();
        loop {
            match self.next() {
                Some(")") => return Ok(Some(numbers)),
                Some(word) => {
                    let number = word.parse();
                    numbers.push(number.map_err(|_| format!("{word} is not a number"))?);
                }
                None => return Err("a list of numbers has no end".into()),
            }
        }
    }

    /// After a word: the bytes of a datum, if the word was its length.
    fn datum(&mut self, word: &str) -> Result<Option<Vec<u8>>, String> {
        let before = self.rest;
        if word.parse::<u32>().is_err() || self.next() != Some("[") {
            self.rest = before;
            return Ok(None);
        }
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                Some("]") => return Ok(Some(bytes)),
                // Bytes are written as signed numbers.
                Some(word) => {
                    let byte = word.parse::<i16>().ok().filter(|n| (-128..256).contains(n));
                    let byte = byte.ok_or_else(|| format!("{word} is no byte"))?;
                    bytes.push(byte.to_le_bytes()[0]);
                }
                None => return Err("a datum has no end".into()),
            }
        }
    }
}

fn word_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ' ' | '\n' | '\t' | '(' | ')' | '{' | '}' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_lists_words_and_data_are_told_apart() {
        let text = r#"({CONST :consttype 23 :constvalue 4 [ 7 0 -1 0 ] :alias my\ table :none <> :empty "" :set (b 3 5) :names ("a\"b" "c")} <>)"#;
        let tree = parse(text).expect("a tree");
        let node = tree.list()[0].node().expect("a node");
        assert_eq!((node.tag.as_str(), node.oid("consttype")), ("CONST", 23));
        let datum = Value::Datum(vec![7, 0, 255, 0]);
        assert_eq!(node.field("constvalue"), Some(&datum));
        assert_eq!(node.text("alias"), Some("my table"));
        assert_eq!((node.text("none"), node.text("empty")), (None, Some("")));
        assert_eq!(node.numbers("set"), [3, 5]);
        assert_eq!(node.texts("names"), ["a\"b", "c"]);
        assert_eq!(tree.list()[1], Value::Nothing);
    }

    #[test]
    fn nonsense_ends_in_a_sentence() {
        assert!(parse("{A :b (").is_err() && parse(")").is_err() && parse("").is_err());
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse("{A :b 4 [ 1 x ]}").is_err() && parse("(i 1 b)").is_err());
    }
}
