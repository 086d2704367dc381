//! One thing of a schema: its statement, and what is said of it afterwards.

use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::{Catalogs, Row};
use super::super::long_text::{Statement, TextStore};
use super::super::refusal::{Refusal, Written};
use super::{comments, grants};

/// OIDs of the catalogs that things stand in; truth: `src/include/catalog/pg_*.h`.
pub(super) mod class {
    use pgclinic_format::{Oid, oid};

    /// Of no catalog: things that follow from others.
    pub(in super::super) const FOLLOWER: Oid = 0;
    /// Rights on the columns of a relation.
    pub(in super::super) const RIGHTS: Oid = 1;
    /// An index put in its place.
    pub(in super::super) const INDEX_PART: Oid = 2;
    /// A type before it has functions.
    pub(in super::super) const SHELL: Oid = 3;
    /// What a catalog lost.
    pub(in super::super) const LOST: Oid = 5;
    /// A setting or the comment of the database.
    pub(in super::super) const DATABASE_PROPERTY: Oid = 4;
    pub(in super::super) const TYPE: Oid = oid::PG_TYPE;
    pub(in super::super) const FUNCTION: Oid = oid::PG_PROC;
    pub(in super::super) const RELATION: Oid = oid::PG_CLASS;
    pub(in super::super) const SERVER: Oid = oid::PG_FOREIGN_SERVER;
    pub(in super::super) const USER_MAPPING: Oid = oid::PG_USER_MAPPING;
    pub(in super::super) const WRAPPER: Oid = oid::PG_FOREIGN_DATA_WRAPPER;
    pub(in super::super) const DEFAULT: Oid = oid::PG_ATTRDEF;
    pub(in super::super) const CAST: Oid = oid::PG_CAST;
    pub(in super::super) const CONSTRAINT: Oid = oid::PG_CONSTRAINT;
    pub(in super::super) const LANGUAGE: Oid = oid::PG_LANGUAGE;
    pub(in super::super) const LARGE_OBJECT: Oid = oid::PG_LARGEOBJECT;
    pub(in super::super) const SCHEMA: Oid = oid::PG_NAMESPACE;
    pub(in super::super) const CLASS: Oid = oid::PG_OPCLASS;
    pub(in super::super) const OPERATOR: Oid = oid::PG_OPERATOR;
    pub(in super::super) const RULE: Oid = oid::PG_REWRITE;
    pub(in super::super) const TRIGGER: Oid = oid::PG_TRIGGER;
    pub(in super::super) const FAMILY: Oid = oid::PG_OPFAMILY;
    pub(in super::super) const ACCESS_METHOD: Oid = oid::PG_AM;
    pub(in super::super) const EXTENSION: Oid = oid::PG_EXTENSION;
    pub(in super::super) const POLICY: Oid = oid::PG_POLICY;
    pub(in super::super) const STATISTICS: Oid = oid::PG_STATISTIC_EXT;
    pub(in super::super) const COLLATION: Oid = oid::PG_COLLATION;
    pub(in super::super) const EVENT_TRIGGER: Oid = oid::PG_EVENT_TRIGGER;
    pub(in super::super) const DICTIONARY: Oid = oid::PG_TS_DICT;
    pub(in super::super) const CONFIGURATION: Oid = oid::PG_TS_CONFIG;
    pub(in super::super) const PARSER: Oid = oid::PG_TS_PARSER;
    pub(in super::super) const TEMPLATE: Oid = oid::PG_TS_TEMPLATE;
    pub(in super::super) const CONVERSION: Oid = oid::PG_CONVERSION;
    pub(in super::super) const TRANSFORM: Oid = oid::PG_TRANSFORM;
    pub(in super::super) const PUBLICATION: Oid = oid::PG_PUBLICATION;
    pub(in super::super) const SUBSCRIPTION: Oid = oid::PG_SUBSCRIPTION;
    pub(in super::super) const DEFAULT_RIGHTS: Oid = oid::PG_DEFAULT_ACL;
    pub(in super::super) const DATABASE: Oid = oid::PG_DATABASE;
}

/// A thing in the catalogs: the catalog and its OID there.
pub(super) type Key = (Oid, Oid);

/// Before or after the data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    BeforeData,
    AfterData,
}

/// Which kinds come first where nothing depends on anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rank {
    Schema,
    Extension,
    Language,
    Collation,
    ShellType,
    Type,
    Function,
    AccessMethod,
    Cast,
    Operator,
    OperatorClass,
    TextSearch,
    Foreign,
    Relation,
    View,
    Attach,
    Default,
    OwnedBy,
    Index,
    Constraint,
    IndexPart,
    Statistics,
    Rule,
    Trigger,
    ForeignKey,
    Policy,
    EventTrigger,
    Refresh,
    Publication,
    Subscription,
    DefaultRights,
    Database,
}

impl Rank {
    pub(super) fn stage(self) -> Stage {
        if self >= Rank::Index {
            Stage::AfterData
        } else {
            Stage::BeforeData
        }
    }
}

/// One thing.
pub(super) struct Item {
    pub(super) rank: Rank,
    pub(super) stage: Stage,
    /// What it is; the first is itself, the others come with it.
    pub(super) keys: Vec<Key>,
    /// What it needs beyond what `pg_depend` says.
    pub(super) needs: Vec<Key>,
    /// `TABLE public.t`
    pub(super) what: String,
    /// How COMMENT and ALTER … OWNER name it; empty where neither is to be written.
    pub(super) spoken: String,
    pub(super) owner: Oid,
    /// Rows are loaded into it.
    pub(super) holds_rows: bool,
    /// Whose rights need no words: the owner, also where another statement sets that.
    pub(super) owner_in_rights: Oid,
    /// Kind for GRANT, and the list of rights, where somebody changed them.
    pub(super) rights: Option<grants::Rights>,
    pub(super) text: Written<Statement>,
    /// What follows it, until the store has it.
    pub(super) details: Vec<Written<String>>,
    pub(super) kept_details: Vec<Written<Statement>>,
}

/// Things as they are gathered: long statements go to the store at once.
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    store: TextStore,
}

impl Items {
    pub(super) fn new(store: &TextStore) -> Self {
        Items {
            list: Vec::new(),
            store: store.clone(),
        }
    }

    pub(super) fn push(&mut self, mut item: Item) {
        item.keep(&self.store);
        self.list.push(item);
    }

    pub(super) fn extend(&mut self, items: impl IntoIterator<Item = Item>) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl Item {
    pub(super) fn new(
        rank: Rank,
        key: Key,
        what: String,
        text: Written<impl Into<Statement>>,
    ) -> Self {
        Item {
            rank,
            stage: rank.stage(),
            keys: vec![key],
            needs: Vec::new(),
            spoken: what.clone(),
            what,
            owner: 0,
            holds_rows: false,
            owner_in_rights: 0,
            rights: None,
            text: text.map(Into::into),
            details: Vec::new(),
            kept_details: Vec::new(),
        }
    }

    /// Hands long texts to the store. What was made of something that could not be read back is not
    /// written.
    pub(super) fn keep(&mut self, store: &TextStore) {
        let kept = |text: Written<Statement>| {
            let failure = store.take_failure().map_or(Ok(()), |why| Err(Refusal(why)));
            let text = failure.and(text)?;
            let kept = text.kept_in(store);
            kept.map_err(|error| Refusal(error.to_string()))
        };
        let text = std::mem::replace(&mut self.text, Ok(Statement::default()));
        self.text = kept(text);
        let details = std::mem::take(&mut self.details).into_iter();
        let details = details.map(|detail| kept(detail.map(Statement::from)));
        self.kept_details.extend(details);
    }

    /// The same with an owner to be set.
    pub(super) fn owned_by(mut self, owner: Oid) -> Self {
        (self.owner, self.owner_in_rights) = (owner, owner);
        self
    }

    /// Names what is lost.
    pub(super) fn lost(oid: Oid, what: String, why: String) -> Self {
        let text: Written<String> = Err(Refusal(why));
        let mut item = Item::new(Rank::Database, (class::LOST, oid), what, text);
        item.spoken.clear();
        item
    }

    /// The same with the rights that stand in column `column` of its row.
    pub(super) fn with_rights(
        mut self,
        kind: grants::GrantObject,
        row: Row<'_>,
        column: &str,
    ) -> Self {
        self.rights = grants::Rights::of(kind, row, column);
        self
    }

    /// Owner, rights and comments.
    pub(super) fn add_details(&mut self, catalogs: &Catalogs<'_>) {
        if self.text.is_err() {
            return;
        }
        if self.owner != 0 && !self.spoken.is_empty() {
            let role = catalogs.role_name(self.owner);
            let spoken = &self.spoken;
            self.details
                .push(role.map(|role| format!("ALTER {spoken} OWNER TO {role};")));
        }
        if let Some(rights) = &self.rights {
            match self.granted_as(catalogs) {
                Ok(name) => grants::write(
                    catalogs,
                    rights,
                    &name,
                    self.owner_in_rights,
                    &mut self.details,
                ),
                Err(refusal) => self.details.push(Err(refusal)),
            }
        }
        self.details.extend(self.extensions_it_goes_with(catalogs));
        comments::write(catalogs, self);
    }

    /// GRANT takes an aggregate for a function, with all arguments in one list.
    fn granted_as(&self, catalogs: &Catalogs<'_>) -> Written<String> {
        match self.keys.first() {
            Some((class::FUNCTION, oid)) if self.spoken.starts_with("AGGREGATE ") => {
                catalogs.function_signature(*oid)
            }
            _ => Ok(self.spoken.clone()),
        }
    }

    /// `ALTER … DEPENDS ON EXTENSION`: dropped with it, and no part of it.
    fn extensions_it_goes_with(&self, catalogs: &Catalogs<'_>) -> Vec<Written<String>> {
        let Some(own) = self.keys.first().filter(|_| !self.spoken.is_empty()) else {
            return Vec::new();
        };
        let depends = catalogs.rows("pg_depend", "objid", own.1);
        let depends = depends
            .iter()
            .filter(|row| row.oid("classid") == own.0 && row.letter("deptype") == 'x');
        let statement = |row: &Row<'_>| {
            let oid = row.oid("refobjid");
            let extension = catalogs.row("pg_extension", oid);
            let extension = extension.ok_or_else(|| Refusal::absent("extension", oid))?;
            let name = catalogs.quoted(&extension.name("extname"));
            Ok(format!(
                "ALTER {} DEPENDS ON EXTENSION {name};",
                self.spoken
            ))
        };
        depends.map(statement).collect()
    }
}

/// Made by a user, and not as a part of an extension.
pub(super) fn is_own(catalogs: &Catalogs<'_>, class: Oid, oid: Oid) -> bool {
    oid >= FIRST_NORMAL_OID && extension_of(catalogs, class, oid).is_none()
}

/// The extension that a thing belongs to; what belongs to one that nothing names is a user's.
pub(super) fn extension_of(catalogs: &Catalogs<'_>, class: Oid, oid: Oid) -> Option<Oid> {
    let depends = catalogs.rows("pg_depend", "objid", oid);
    let member = depends
        .iter()
        .find(|row| row.oid("classid") == class && row.letter("deptype") == 'e')?;
    let extension = catalogs.row("pg_extension", member.oid("refobjid"))?;
    Some(extension.id())
}
