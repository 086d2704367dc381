//! SQL text cut into tokens, without comments.

/// The longest text that is read.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A key word or plain name, in lower case.
    Word(String),
    /// A name between double quotes.
    Name(String),
    /// A string, of any kind.
    Text(String),
    /// A number as it stands.
    Number(String),
    /// Anything else.
    Sign(char),
}

impl Token {
    /// It is this key word.
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own == word)
    }

    /// A name, quoted or not.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Token::Word(name) | Token::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// All tokens, each with its line, from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("it is longer than {TEXT_BYTES_MAX} bytes"));
    }
    let mut cutter = Cutter {
        rest: text,
        line: 1,
    };
    let mut found = Vec::new();
    while let Some(token) = cutter.next()? {
        found.push(token);
    }
    Ok(found)
}

struct Cutter<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cutter<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Result<Option<(Token, usize)>, String> {
        self.skip()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let second = self.rest.chars().nth(1);
        let token = match first {
            '"' => Token::Name(self.quoted('"')?),
            '\'' => Token::Text(self.quoted('\'')?),
            'e' | 'E' | 'b' | 'B' | 'x' | 'X' | 'n' | 'N' if second == Some('\'') => {
                self.take(1);
                Token::Text(self.quoted('\'')?)
            }
            '$' => match self.dollar_quoted() {
                Some(text) => Token::Text(text),
                None => self.sign(first),
            },
            _ if first.is_ascii_digit() => {
                Token::Number(self.while_(|c| c.is_ascii_digit() || c == '.').to_owned())
            }
            _ if first.is_alphabetic() || first == '_' => {
                let word = self.while_(|c| c.is_alphanumeric() || c == '_' || c == '$');
                Token::Word(word.to_lowercase())
            }
            _ => self.sign(first),
        };
        Ok(Some((token, line)))
    }

    fn sign(&mut self, first: char) -> Token {
        self.take(first.len_utf8());
        Token::Sign(first)
    }

    fn while_(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    /// Blanks and comments; those of `/*` may lie inside each other.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            self.while_(char::is_whitespace);
            if self.rest.starts_with("--") {
                self.while_(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) -> Result<(), String> {
        let (line, mut depth) = (self.line, 0usize);
        loop {
            match self
                .rest
                .find("*/")
                .into_iter()
                .chain(self.rest.find("/*"))
                .min()
            {
                None => return Err(format!("line {line}: a comment has no end")),
                Some(at) => {
                    self.take(at);
                    if self.take(2) == "/*" {
                        depth += 1;
                    } else {
                        depth -= 1;
                    }
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Up to the closing quote; two stand for one.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let line = self.line;
        let mut text = String::new();
        self.take(1);
        loop {
            let end = self.rest.find(quote);
            let end = end.ok_or_else(|| format!("line {line}: a quote has no end"))?;
            text.push_str(self.take(end));
            self.take(1);
            if !self.rest.starts_with(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.take(1);
        }
    }

    /// `$tag$…$tag$`, if it is that.
    fn dollar_quoted(&mut self) -> Option<String> {
        let inner = self.rest.strip_prefix('$')?;
        let len = inner.find('$')?;
        let tag = self.rest.get(..len + 2)?;
        let plain = |c: char| c.is_alphanumeric() || c == '_';
        if !tag.trim_matches('$').chars().all(plain) {
            return None;
        }
        let body = self.rest.get(tag.len()..)?;
        let end = body.find(tag)?;
        let text = body.get(..end)?.to_owned();
        self.take(tag.len() * 2 + end);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_skipped_and_quotes_end_where_they_end() {
        let text = "a /* x /* y */ z */ \"B\"\"c\" -- d\n'it''s' $x$ $y$ $x$ 1.5 (";
        let found: Vec<Token> = tokens(text)
            .expect("tokens")
            .into_iter()
            .map(|token| token.0)
            .collect();
        let expected = [
            Token::Word("a".into()),
            Token::Name("B\"c".into()),
            Token::Text("it's".into()),
            Token::Text(" $y$ ".into()),
            Token::Number("1.5".into()),
            Token::Sign('('),
        ];
        assert_eq!(found, expected);
        assert!(tokens("'a").is_err() && tokens("/* /* */").is_err());
    }
}
