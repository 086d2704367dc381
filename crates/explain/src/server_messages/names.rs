//! The names that the next steps speak of, real ones where a cluster was given, and the commands
//! with them.

use pgclinic_format::Fork;
use pgclinic_model::document::FileKind;
use pgclinic_model::{in_quotes, shell_word};

use super::facts::Facts;
use super::resolved::{Named, Resolved};

/// What a message names and what a cluster knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// From the text.
    pub facts: &'a Facts,
    /// From the files.
    pub resolved: Option<&'a Resolved>,
}

impl Names<'_> {
    fn known(&self) -> Option<&Named> {
        self.resolved?.relation.as_ref()
    }

    /// `table public.docs`, or whatever the message calls it.
    pub fn relation(&self) -> String {
        if let Some(relation) = self.known() {
            return format!("{} {}", relation.kind.words(), relation.name);
        }
        let facts = self.facts;
        let named = [
            &facts.toast_relation,
            &facts.sequence,
            &facts.relation_name,
            &facts.relation_path,
        ];
        named.into_iter().flatten().next().map_or_else(
            || "the relation".to_owned(),
            |name| format!("relation {name}"),
        )
    }

    /// The relation is known to be an index.
    pub fn is_index(&self) -> bool {
        self.known()
            .is_some_and(|relation| relation.kind == FileKind::Index)
    }

    /// The relation is known to be a table, a TOAST relation or a materialised view.
    pub fn is_heap(&self) -> bool {
        self.known().is_some_and(|relation| {
            matches!(
                relation.kind,
                FileKind::Table | FileKind::Toast | FileKind::MaterializedView
            )
        })
    }

    fn pgdata(&self) -> String {
        let known = self
            .resolved
            .and_then(|resolved| resolved.pgdata.as_deref());
        known.map_or_else(|| "PGDATA".to_owned(), shell_word)
    }

    /// `--database 'x' --relation 'public.docs'`, or by the file's number.
    fn selection(&self) -> String {
        let resolved = self.resolved;
        let database = resolved.and_then(|resolved| resolved.database.as_deref());
        let mut words = database
            .map(|name| format!(" --database {}", in_quotes(name)))
            .unwrap_or_default();
        let filenode = resolved.and_then(|resolved| resolved.filenode);
        if let Some(relation) = self.known() {
            words.push_str(&format!(" --relation {}", in_quotes(&relation.name)));
        } else if let Some(filenode) = filenode {
            words.push_str(&format!(" --filenode {filenode}"));
        } else if let Some(filenode) = self.facts.relation_path.as_deref().and_then(filenode_in) {
            words.push_str(&format!(" --filenode {filenode}"));
        } else if let Some(name) = self
            .facts
            .sequence
            .as_ref()
            .or(self.facts.relation_name.as_ref())
        {
            words.push_str(&format!(" --relation {}", in_quotes(&with_schema(name))));
        } else if let Some(name) = &self.facts.toast_relation {
            words.push_str(&format!(
                " --relation {}",
                in_quotes(&format!(
                    "pg_toast.{}",
                    name.trim_start_matches("pg_toast.")
                ))
            ));
        }
        let fork = resolved
            .and_then(|resolved| resolved.fork)
            .filter(|fork| *fork != Fork::Main);
        words.push_str(
            &fork
                .map(|fork| format!(" --fork {fork}"))
                .unwrap_or_default(),
        );
        words
    }

    /// `pgclinic check PGDATA --relation …`.
    pub fn check_command(&self) -> String {
        format!("pgclinic check {}{}", self.pgdata(), self.selection())
    }

    /// `pgclinic check PGDATA`.
    pub fn check_all_command(&self) -> String {
        format!("pgclinic check {}", self.pgdata())
    }

    /// `pgclinic inspect PGDATA --relation … --block …`, when the message or the cluster names a
    /// block.
    pub fn inspect_command(&self) -> Option<String> {
        let resolved = self.resolved.and_then(|resolved| resolved.block);
        let block = resolved.or(self.facts.block).or(self.facts.block_in_file)?;
        let selection = self.selection();
        (!selection.is_empty()).then(|| {
            format!(
                "pgclinic inspect {}{selection} --block {block}",
                self.pgdata()
            )
        })
    }

    /// A step as the page of a message writes it: a name in braces alone is steps that many
    /// messages share, one among words is a command.
    pub(super) fn fill_in(&self, step: &str) -> Vec<String> {
        match step {
            "{look}" => self.look(),
            "{restore}" => vec![self.restore()],
            "{reindex}" => vec![self.reindex()],
            "{mend}" => vec![self.mend()],
            "{save_the_rest}" => vec![self.save_the_rest()],
            words => vec![self.with_command(words)],
        }
    }

    /// The words once more with the command that they name: at most one, so that nothing is looked
    /// for in names.
    fn with_command(&self, words: &str) -> String {
        for (brace, command) in [
            ("{check}", self.check_command()),
            ("{check_all}", self.check_all_command()),
        ] {
            if let Some((before, behind)) = words.split_once(brace) {
                return format!("{before}{command}{behind}");
            }
        }
        assert!(!words.contains('{'), "no step knows the brace in {words:?}");
        words.to_owned()
    }

    /// The first two steps of nearly every message: look, in the copy, at what is there.
    pub fn look(&self) -> Vec<String> {
        let mut steps = vec![format!(
            "See everything that is wrong there, on the stopped copy: `{}`",
            self.check_command()
        )];
        steps.extend(
            self.inspect_command()
                .map(|command| format!("Take the page apart: `{command}`")),
        );
        steps
    }

    /// How to put sound bytes back.
    pub fn restore(&self) -> String {
        let place = self
            .resolved
            .and_then(|resolved| Some((resolved.path.as_deref()?, resolved.bytes?)));
        let what = match place {
            Some((path, [start, end])) => {
                format!("bytes {start} to {end} (not included) of {path}")
            }
            None => format!("the file of {}", self.relation()),
        };
        format!(
            "Restore from a backup or a standby that is sound: the whole cluster to a point in time before the damage, \
             or {} dumped from a restored copy. {} can be taken alone only from a copy of exactly the same state, and \
             never while the server runs. Try the backup first: `pgclinic check` reads it like a cluster, and \
             `pgclinic heal {} --backup BACKUP --wal ARCHIVE` takes single pages from it and brings them up to date",
            self.relation(),
            upper_first(&what),
            self.pgdata()
        )
    }

    /// `REINDEX INDEX CONCURRENTLY …;` with the index's name.
    pub fn reindex(&self) -> String {
        let name = self.known().map(|relation| relation.sql_name.clone());
        let pasted = self
            .facts
            .relation_name
            .clone()
            .filter(|name| is_plain(name));
        let name = name.or(pasted).unwrap_or_else(|| "INDEX_NAME".into());
        format!(
            "An index can always be built again from its table. When the table's own pages are sound: \
             `REINDEX INDEX CONCURRENTLY {name};` (for an index of a system catalog without CONCURRENTLY)"
        )
    }

    /// Which way out fits: an index is rebuilt, everything else restored.
    pub fn mend(&self) -> String {
        if self.is_index() {
            self.reindex()
        } else {
            self.restore()
        }
    }

    /// Save what can be read.
    pub fn save_the_rest(&self) -> String {
        format!(
            "Without a backup, save what can be read before anything is changed: `pgclinic salvage {} --to DIR` takes \
             the rows out of the files, those of damaged pages too, and lists the keys of the rows that are lost",
            self.pgdata()
        )
    }
}

fn upper_first(words: &str) -> String {
    let mut chars = words.chars();
    chars
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
        .unwrap_or_default()
}

/// `28751` of `base/16384/28751_vm.1`.
fn filenode_in(path: &str) -> Option<u32> {
    let file = path.rsplit('/').next()?;
    let digits = file.split(['_', '.']).next()?;
    digits.parse().ok()
}

/// A name from a text that can stand in SQL as it is.
fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte))
}

fn with_schema(name: &str) -> String {
    if name.contains('.') {
        name.to_owned()
    } else {
        format!("*.{name}")
    }
}
