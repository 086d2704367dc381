//! The few arguments that tasks take: flags, and options with a value.

/// The words after a task's name, taken one by one; what nobody took is an error.
pub(crate) struct Args {
    words: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: &[String]) -> Self {
        Self {
            words: words.to_vec(),
        }
    }

    /// Takes `--name` and says whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes `--name VALUE`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        if at + 1 >= self.words.len() {
            return Err(format!("{name} needs a value"));
        }
        self.words.remove(at);
        Ok(Some(self.words.remove(at)))
    }

    /// Takes `--name VALUE` as a number, or gives `default`.
    pub(crate) fn number(&mut self, name: &str, default: u64) -> Result<u64, String> {
        match self.value(name)? {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("{name} {text} is not a number")),
        }
    }

    /// Ends the reading: a word that is left was not understood.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("{word} is not understood here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn args(line: &str) -> Args {
        Args::new(&line.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_taken_is_gone() {
        let mut args = args("--runs 3 --cold");
        assert_eq!(args.number("--runs", 5), Ok(3));
        assert!(args.flag("--cold"));
        assert!(!args.flag("--cold"));
        assert_eq!(args.finish(), Ok(()));
    }

    #[test]
    fn leftovers_and_missing_values_are_named() {
        assert_eq!(
            args("--what").finish(),
            Err("--what is not understood here".into())
        );
        assert_eq!(
            args("--runs").number("--runs", 5),
            Err("--runs needs a value".into())
        );
    }
}
