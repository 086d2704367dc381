//! The statements that say how rows are laid out.

use std::sync::Arc;

use pgclinic_format::datum::TypeInfo;

use super::tokens::{Token, tokens};
use super::types::{self, Types};
use super::{GivenColumn, GivenTable};

/// Columns of one table; the server takes 1600.
const COLUMNS_MAX: usize = 1664;

/// Words that may follow the name of a type.
const AFTER_TYPE: &[&str] = &[
    "not",
    "null",
    "default",
    "primary",
    "unique",
    "check",
    "references",
    "collate",
    "constraint",
    "generated",
    "storage",
    "compression",
    "options",
    "deferrable",
    "initially",
];

/// Words that begin a constraint of the table where a column could stand.
const CONSTRAINTS: &[&str] = &[
    "constraint",
    "primary",
    "unique",
    "check",
    "foreign",
    "exclude",
];

/// What is known so far.
struct ScriptState {
    types: Types,
    tables: Vec<GivenTable>,
}

/// What a file says.
pub(super) struct ScriptTables {
    pub(super) tables: Vec<GivenTable>,
    /// Statements that make tables, but not as they can be read here.
    pub(super) unread: Vec<Unread>,
}

/// One of them.
pub(super) struct Unread {
    pub(super) why: String,
    /// The words that it begins with, among them its name.
    words: Vec<String>,
}

impl Unread {
    /// It is of the table of this name, with its schema or without.
    pub(super) fn names(&self, wanted: &str) -> bool {
        let name = wanted.rsplit('.').next().unwrap_or(wanted);
        self.words.iter().any(|word| word == name)
    }
}

/// All tables of a file.
pub(super) fn read(text: &str) -> Result<ScriptTables, String> {
    let tokens = tokens(text)?;
    let mut files = FileLines::of(text);
    let mut known = ScriptState {
        types: Types::new(),
        tables: Vec::new(),
    };
    let mut unread = Vec::new();
    for statement in tokens.split(|(token, _)| *token == Token::Sign(';')) {
        let line = statement.first().map_or(0, |(_, line)| *line);
        let words: Vec<Token> = statement.iter().map(|(token, _)| token.clone()).collect();
        let mut reader = Reader {
            tokens: &words,
            at: 0,
        };
        let before = known.tables.len();
        let is_table = words.iter().take(4).any(|word| word.is("table"));
        match known.statement(&mut reader) {
            // A type that cannot be read is missed where a table has a column of it.
            Err(_) if !is_table => {}
            Err(why) => unread.push(Unread {
                why: format!("the statement in line {line}: {why}"),
                words: words
                    .iter()
                    .filter_map(Token::name)
                    .take(8)
                    .map(str::to_owned)
                    .collect(),
            }),
            Ok(()) => {}
        }
        if let Some(table) = known.tables.get_mut(before) {
            table.file = files.take_before(line);
        }
    }
    Ok(ScriptTables {
        tables: known.tables,
        unread,
    })
}

/// The lines `-- file base/5/16384: …`, each of which is of the next table.
struct FileLines {
    /// Number of the line, from 1, and the path; the last one first.
    lines: Vec<(usize, String)>,
}

impl FileLines {
    fn of(text: &str) -> Self {
        let path = |line: &str| {
            let rest = line.trim_start().strip_prefix("-- file ")?;
            let end = rest.find([':', ' ', ',']).unwrap_or(rest.len());
            rest.get(..end).map(str::to_owned)
        };
        let lines = text.lines().zip(1..);
        let mut lines: Vec<(usize, String)> = lines
            .filter_map(|(line, number)| Some((number, path(line)?)))
            .collect();
        lines.reverse();
        FileLines { lines }
    }

    /// The nearest one before a line; those that it leaves behind are of files that nothing
    /// describes.
    fn take_before(&mut self, line: usize) -> Option<String> {
        let mut nearest = None;
        while let Some((_, path)) = self.lines.pop_if(|(number, _)| *number < line) {
            nearest = Some(path);
        }
        nearest
    }
}

/// Columns of one name are one, where the first of them stands.
fn add_new(columns: &mut Vec<GivenColumn>, more: Vec<GivenColumn>) {
    for column in more {
        if !columns.iter().any(|known| known.name == column.name) {
            columns.push(column);
        }
    }
}

impl ScriptState {
    fn statement(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        if !reader.takes("create") {
            return Ok(());
        }
        for word in [
            "unlogged",
            "foreign",
            "temporary",
            "temp",
            "global",
            "local",
        ] {
            reader.takes(word);
        }
        if reader.takes("table") {
            return self.table(reader);
        }
        if reader.takes("type") {
            return self.made_type(reader);
        }
        if reader.takes("domain") {
            return self.domain(reader);
        }
        Ok(())
    }

    fn table(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        if reader.takes("if") {
            reader.takes("not");
            reader.takes("exists");
        }
        let (schema, name) = reader.name()?;
        if reader.takes("partition") && reader.takes("of") {
            let parent = reader.name()?;
            let columns = self.columns_of(&parent).unwrap_or_default();
            self.push(schema, name, columns);
            return Ok(());
        }
        if !reader.takes_sign('(') {
            // `OF type`, `AS SELECT`: no columns are told here.
            return Ok(());
        }
        let mut table = GivenTable {
            schema,
            name,
            columns: Vec::new(),
            notes: Vec::new(),
            file: None,
            confidence: None,
        };
        for mut part in reader.parts()? {
            self.column(&mut part, &mut table)?;
        }
        if reader.takes("inherits") && reader.takes_sign('(') {
            let mut columns = Vec::new();
            for mut part in reader.parts()? {
                // A table whose parent is not told is passed over.
                let Some(inherited) = self.columns_of(&part.name()?) else {
                    return Ok(());
                };
                add_new(&mut columns, inherited);
            }
            add_new(&mut columns, std::mem::take(&mut table.columns));
            table.columns = columns;
        }
        self.tables.push(table);
        Ok(())
    }

    fn columns_of(&self, (schema, name): &(Option<String>, String)) -> Option<Vec<GivenColumn>> {
        let is_parent = |table: &&GivenTable| table.name == *name && table.schema == *schema;
        let parent = self.tables.iter().find(is_parent)?;
        Some(parent.columns.clone())
    }

    fn push(&mut self, schema: Option<String>, name: String, columns: Vec<GivenColumn>) {
        if !columns.is_empty() {
            self.tables.push(GivenTable {
                schema,
                name,
                columns,
                notes: Vec::new(),
                file: None,
                confidence: None,
            });
        }
    }

    fn column(&self, reader: &mut Reader<'_>, table: &mut GivenTable) -> Result<(), String> {
        let Some(first) = reader.peek().cloned() else {
            return Ok(());
        };
        if CONSTRAINTS.iter().any(|word| first.is(word)) {
            return Ok(());
        }
        if first.is("like") {
            return Err(format!(
                "table {} is made LIKE another: give its columns",
                table.name
            ));
        }
        if table.columns.len() >= COLUMNS_MAX {
            return Err(format!(
                "table {} has more than {COLUMNS_MAX} columns",
                table.name
            ));
        }
        let name = first.name().ok_or("a column has no name")?.to_owned();
        reader.at += 1;
        let column = match reader.peek() {
            Some(token) if token.is("dropped") => reader.dropped(name)?,
            _ => {
                let (ty, note) = self.type_of(reader)?;
                table
                    .notes
                    .extend(note.map(|note| format!("column {name}: {note}")));
                GivenColumn {
                    name,
                    ty,
                    dropped: false,
                }
            }
        };
        if reader.has("virtual") {
            table.notes.push(format!(
                "column {} is generated when it is read: nothing is stored",
                column.name
            ));
        }
        table.columns.push(column);
        Ok(())
    }

    /// A type by its name, with modifiers and brackets; and what should be known of it.
    fn type_of(&self, reader: &mut Reader<'_>) -> Result<(Arc<TypeInfo>, Option<String>), String> {
        let mut words = Vec::new();
        let mut is_array = false;
        while let Some(token) = reader.peek() {
            match token {
                Token::Sign('(') => reader.skip_parens()?,
                Token::Sign('[') => {
                    is_array = true;
                    reader.skip_until(']');
                }
                // The schema in front of a name says nothing here.
                Token::Sign('.') => {
                    words.clear();
                    reader.at += 1;
                }
                Token::Word(word) if word == "array" => {
                    is_array = true;
                    reader.at += 1;
                }
                Token::Word(word) if AFTER_TYPE.contains(&word.as_str()) => break,
                Token::Word(word) => {
                    words.push(word.clone());
                    reader.at += 1;
                }
                Token::Name(name) => {
                    words.push(if name == "char" {
                        "\"char\"".into()
                    } else {
                        name.clone()
                    });
                    reader.at += 1;
                }
                _ => break,
            }
        }
        let name = match words.first().map(String::as_str) {
            // `interval day to second`
            Some("interval") => "interval".to_owned(),
            _ => words.join(" "),
        };
        let found = self.types.find(&name, is_array);
        let ty =
            found.ok_or_else(|| format!("type {name:?} is not known: make it in the same file"))?;
        let is_enum = self.is_enum(&name);
        let note = is_enum
            .then(|| format!("values of the enum {name} are given as the numbers of their labels"));
        Ok((ty, note))
    }

    fn is_enum(&self, name: &str) -> bool {
        let ty = self.types.find(name, false);
        name != "oid" && ty.is_some_and(|ty| ty.oid == 0 && ty.name == "oid")
    }

    fn made_type(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let (_, name) = reader.name()?;
        if !reader.takes("as") {
            return self.base_type(&name, reader);
        }
        if reader.takes("enum") {
            if let Some(info) = types::enumeration() {
                self.types.add(&name, info);
            }
            return Ok(());
        }
        let is_range = reader.takes("range");
        if !reader.takes_sign('(') {
            return Ok(());
        }
        let (mut subtype, mut multirange) = (None, types::multirange_name(&name));
        let mut fields = Vec::new();
        for mut part in reader.parts()? {
            let Some(field) = part.peek().and_then(Token::name).map(str::to_owned) else {
                continue;
            };
            part.at += 1;
            if is_range {
                let is_equal = part.takes_sign('=');
                if is_equal && field == "subtype" {
                    subtype = Some(self.type_of(&mut part)?.0);
                } else if is_equal && field == "multirange_type_name" {
                    multirange = part.name()?.1;
                }
                continue;
            }
            fields.push((field, self.type_of(&mut part)?.0));
        }
        if !is_range {
            self.types.add(&name, types::composite(&name, fields));
        }
        if let Some(subtype) = subtype {
            self.types.add(&name, types::range(&name, &subtype));
            let info = types::multirange(&multirange, &subtype);
            self.types.add(&multirange, info);
        }
        Ok(())
    }

    /// `(INTERNALLENGTH = 16, ALIGNMENT = double, PASSEDBYVALUE)`: its values are bytes here.
    fn base_type(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), String> {
        if !reader.takes_sign('(') {
            return Ok(());
        }
        let (mut len, mut align, mut byval) = (-1i16, 4u8, false);
        for mut part in reader.parts()? {
            let Some(word) = part.peek().and_then(Token::name).map(str::to_owned) else {
                continue;
            };
            part.at += 1;
            part.takes_sign('=');
            match (word.as_str(), part.peek()) {
                ("internallength", Some(Token::Number(bytes))) => {
                    len = bytes
                        .parse()
                        .map_err(|_| "its length is not a number of bytes")?;
                }
                ("alignment", Some(token)) => {
                    align = match token.name() {
                        Some("char") => 1,
                        Some("int2") => 2,
                        Some("double") => 8,
                        _ => 4,
                    }
                }
                ("passedbyvalue", _) => byval = true,
                // That of another type, which may be unknown.
                ("like", _) => return Ok(()),
                _ => {}
            }
        }
        self.types.add(name, types::stored(name, len, byval, align));
        Ok(())
    }

    fn domain(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let (_, name) = reader.name()?;
        reader.takes("as");
        let (base, _) = self.type_of(reader)?;
        self.types.add(&name, types::domain(&name, &base));
        Ok(())
    }
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn has(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.is(word))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(word));
        self.at += usize::from(found);
        found
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    /// `name`, `schema.name` or `database.schema.name`.
    fn name(&mut self) -> Result<(Option<String>, String), String> {
        let (mut schema, mut name) = (None, None);
        loop {
            let part = self
                .peek()
                .and_then(Token::name)
                .ok_or("a name is missing")?;
            self.at += 1;
            schema = name.take().or(schema);
            name = Some(part.to_owned());
            if !self.takes_sign('.') {
                return Ok((schema, name.unwrap_or_default()));
            }
        }
    }

    /// What stands between commas up to the closing parenthesis; the opening one was taken.
    fn parts(&mut self) -> Result<Vec<Reader<'t>>, String> {
        let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, self.at);
        while let Some(token) = self.peek() {
            let here = self.at;
            self.at += 1;
            let is_end = *token == Token::Sign(')') && depth == 0;
            match token {
                Token::Sign('(' | '[') => depth += 1,
                Token::Sign(')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if is_end || *token == Token::Sign(',') && depth == 0 {
                let tokens = self.tokens.get(start..here).unwrap_or_default();
                parts.push(Reader { tokens, at: 0 });
                start = self.at;
            }
            if is_end {
                return Ok(parts);
            }
        }
        Err("a parenthesis is not closed".into())
    }

    fn skip_parens(&mut self) -> Result<(), String> {
        self.at += 1;
        self.parts().map(|_| ())
    }

    fn skip_until(&mut self, sign: char) {
        while let Some(token) = self.peek() {
            self.at += 1;
            if *token == Token::Sign(sign) {
                return;
            }
        }
    }

    /// `dropped(length, alignment)`
    fn dropped(&mut self, name: String) -> Result<GivenColumn, String> {
        let wrong = || {
            format!(
                "column {name}: dropped(length, alignment), where length is -1 for varying ones"
            )
        };
        self.at += 1;
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        let (len, align) = match rest {
            [
                Token::Sign('('),
                Token::Number(len),
                Token::Sign(','),
                Token::Number(align),
                Token::Sign(')'),
                ..,
            ] => (len.parse::<i16>().map_err(|_| wrong())?, align),
            [
                Token::Sign('('),
                Token::Sign('-'),
                Token::Number(one),
                Token::Sign(','),
                Token::Number(align),
                Token::Sign(')'),
                ..,
            ] if one == "1" => (-1, align),
            _ => return Err(wrong()),
        };
        let align = align
            .parse::<u8>()
            .ok()
            .filter(|align| matches!(align, 1 | 2 | 4 | 8));
        if len == 0 {
            return Err(wrong());
        }
        Ok(GivenColumn {
            ty: Arc::new(types::dropped(len, align.ok_or_else(wrong)?)),
            name,
            dropped: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{columns_in, table_in};

    fn layouts(text: &str) -> Vec<(String, String, i16, u8)> {
        let table = columns_in(text).unwrap_or_else(|why| panic!("{why}"));
        let columns = table.columns.iter();
        columns
            .map(|column| {
                (
                    column.name.clone(),
                    column.ty.name.clone(),
                    column.layout().attlen,
                    column.layout().attalign,
                )
            })
            .collect()
    }

    #[test]
    fn columns_have_the_layout_of_their_types() {
        let found = layouts(
            "id bigint NOT NULL, \"A b\" character varying(40) DEFAULT 'x, y'::text, c numeric(10, 2)[], d dropped(4, 4), e \"char\", f char(3), g double precision",
        );
        let expected = [
            ("id", "int8", 8, 8),
            ("A b", "varchar", -1, 4),
            ("c", "_numeric", -1, 4),
            ("d", "dropped", 4, 4),
            ("e", "char", 1, 1),
            ("f", "bpchar", -1, 4),
            ("g", "float8", 8, 8),
        ];
        let expected = expected.map(|(name, ty, len, align)| (name.into(), ty.into(), len, align));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_dump_is_read_as_it_is() {
        let dump = "SET x = 1;\nCREATE TYPE public.mood AS ENUM ('a;b', 'c');\nCREATE DOMAIN public.p AS int CHECK (VALUE > 0);\n\
            CREATE TYPE s.pair AS (a int, b text);\nCREATE FUNCTION f() RETURNS int AS $$ CREATE TABLE no (a int); $$ LANGUAGE sql;\n\
            CREATE TABLE public.t (\n  a public.mood,\n  b public.p NOT NULL,\n  c s.pair[],\n  d timestamp(3) with time zone,\n  CONSTRAINT x CHECK ((b > 1))\n);\nCREATE TABLE u (x int);";
        let table = table_in(dump, Some("public.t")).expect("a table");
        let names: Vec<&str> = table
            .columns
            .iter()
            .map(|column| column.ty.name.as_str())
            .collect();
        assert_eq!(names, ["oid", "p", "_pair", "timestamptz"]);
        assert_eq!(table.notes.len(), 1);
        assert!(table_in(dump, None).is_err(), "two tables");
    }

    #[test]
    fn a_dump_with_extensions_ranges_and_arrays_of_rows_is_read() {
        let dump = "CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;\nCREATE TYPE public.floats AS RANGE (\n    subtype = double precision,\n    \
            multirange_type_name = public.many_floats,\n    subtype_diff = float8mi\n);\nCREATE TYPE s.pair AS (a int, g public.geometry(Point,4326));\n\
            CREATE TYPE public.own;\nCREATE TYPE public.own (INTERNALLENGTH = 16, INPUT = public.own_in, OUTPUT = public.own_out, ALIGNMENT = double);\n\
            CREATE TABLE public.t (a public.geometry(Point,4326), b public.floats, c public.many_floats, d s.pair[], e public.own, f public.vector(3), g lo);\n\
            CREATE TABLE public.other (x public.nobody_knows);";
        let table = table_in(dump, Some("public.t")).expect("a table");
        let shown = table.columns.iter().map(|column| {
            let layout = column.layout();
            (column.ty.name.as_str(), layout.attlen, layout.attalign)
        });
        let expected = [
            ("geometry", -1, 8),
            ("floats", -1, 8),
            ("many_floats", -1, 8),
            ("_pair", -1, 8),
            ("own", 16, 8),
            ("vector", -1, 4),
            ("oid", 4, 4),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let why = table_in(dump, Some("public.other")).expect_err("an unknown type");
        assert!(why.contains("nobody_knows"), "{why}");
    }

    #[test]
    fn columns_of_a_parent_come_first() {
        let text = "CREATE TABLE a (x int, y text); CREATE TABLE b (z int, x int) INHERITS (a); \
            CREATE TABLE c PARTITION OF a FOR VALUES IN (1); CREATE TABLE d (q int) INHERITS (nobody);";
        let names = |table: &str| -> Vec<String> {
            let table = table_in(text, Some(table)).expect("a table");
            table
                .columns
                .into_iter()
                .map(|column| column.name)
                .collect()
        };
        assert_eq!(names("b"), ["x", "y", "z"]);
        assert_eq!(names("c"), ["x", "y"]);
        assert!(table_in(text, Some("d")).is_err());
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(columns_in("a nosuch").is_err_and(|why| why.contains("nosuch")));
        assert!(columns_in("a int, b dropped(3)").is_err());
        assert!(table_in("CREATE TABLE t (a int", None).is_err());
        assert!(table_in("CREATE TABLE t (LIKE u)", None).is_err());
        assert!(table_in("SELECT 1", None).is_err());
    }
}
