//! The lines of `pg_hba.conf` and `pg_ident.conf`, and what the server says about wrong ones.
//!
//! A server that is told to reload keeps its old lines when one of the new ones is wrong, and says
//! so only in its log. `pg_hba_file_rules` and `pg_ident_file_mappings` show how the files as they
//! stand now would be read.

use pgclinic_servers::Session;

use crate::error::{Error, Result};

/// The map's name in both files.
const MAP: &str = "people";

/// The rules of a run, with a remark on each.
pub(super) fn hba(issuer: &str, scope: &str) -> String {
    format!(
        "# The superuser prepares the run over the private socket.\n\
         local  all  postgres  trust\n\
         # Everybody else shows a token. issuer: exactly as the provider spells it in its discovery document, scheme\n\
         # and port included, without a slash at the end. scope: what clients ask for; the validator checks it too.\n\
         # map: the validator gives a name from the token, pg_ident.conf says which roles it may use.\n\
         local  all  all  oauth  issuer=\"{issuer}\" scope=\"{scope}\" map={MAP}\n"
    )
}

/// The map of a run.
pub(super) fn ident() -> String {
    format!(
        "# Map, name in the token, role. A name that starts with a slash is a regular expression, and \\1 is its part in\n\
         # parentheses: alice@example.com may be alice, and nobody of another domain may be anybody.\n\
         {MAP}  \"/^([a-z]+)@example\\.com$\"  \\1\n"
    )
}

/// Lines that people write by mistake, each with a word of what the server says about it.
pub(super) const BROKEN_HBA: &[(&str, &str)] = &[
    (
        "local all all oauth scope=\"openid\"",
        "requires argument \"issuer\"",
    ),
    (
        "local all all oauth issuer=\"https://x\"",
        "requires argument \"scope\"",
    ),
    (
        "local all all oauth issuer=\"https://x\" scope=\"openid\" validator=another",
        "is not permitted by",
    ),
    (
        "local all all oauth issuer=\"https://x\" scope=\"openid\" audience=db",
        "unrecognized authentication option name",
    ),
    (
        "local all all oauth issuer=\"https://x\" scope=\"openid\" map=people delegate_ident_mapping=1",
        "cannot be used in combination with delegate_ident_mapping",
    ),
    (
        "local all all oauth issuer scope=openid",
        "not in name=value format",
    ),
    (
        "local all all oath issuer=\"https://x\"",
        "invalid authentication method",
    ),
    ("lokal all all oauth", "invalid connection type"),
    (
        "host all all 10.0.0.300/8 oauth",
        "both host name and CIDR mask",
    ),
    ("host all all 10.0.0.0 oauth", "invalid IP mask"),
    ("local all all", "end-of-line before authentication method"),
    (
        "local all all trust scope=\"openid\"",
        "is only valid for authentication methods",
    ),
];

/// The same for `pg_ident.conf`.
pub(super) const BROKEN_IDENT: &[(&str, &str)] = &[
    ("people alice@example.com", "missing entry at end of line"),
    (
        "people \"/^([a-z]+@example\" \\1",
        "invalid regular expression",
    ),
];

/// A line that the server cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongLine {
    pub(super) file: String,
    pub(super) line: String,
    /// The server's words.
    pub(super) error: String,
}

impl WrongLine {
    /// Place, the server's words, and what to do.
    pub(super) fn words(&self) -> String {
        let what =
            explain(&self.error).unwrap_or("PostgreSQL's words are all there is to say about it.");
        format!("{} line {}: {}. {what}", self.file, self.line, self.error)
    }
}

/// Every wrong line of both files, as the server reads them now.
pub(super) fn wrong_lines(session: &mut Session) -> Result<Vec<WrongLine>> {
    let views = [
        ("pg_hba.conf", "pg_hba_file_rules"),
        ("pg_ident.conf", "pg_ident_file_mappings"),
    ];
    let mut wrong = Vec::new();
    for (file, view) in views {
        let sql =
            format!("SELECT line_number, error FROM {view} WHERE error IS NOT NULL ORDER BY 1");
        let rows = session
            .query(&sql)
            .map_err(Error::sql(format!("reading {view}")))?;
        wrong.extend(rows.into_iter().map(|row| {
            let mut columns = row.into_iter().map(Option::unwrap_or_default);
            WrongLine {
                file: file.to_owned(),
                line: columns.next().unwrap_or_default(),
                error: columns.next().unwrap_or_default(),
            }
        }));
    }
    Ok(wrong)
}

/// What an error of `hba.c` or `auth-oauth.c` means and what helps; `None` for one that is not
/// known.
pub(super) fn explain(error: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(part, _)| error.contains(part));
    known.map(|(_, words)| *words)
}

/// The more special text stands first.
const EXPLAINED: &[(&str, &str)] = &[
    (
        "requires argument \"issuer\"",
        "Add issuer=\"https://…\": the provider's own name, exactly as its discovery document spells it.",
    ),
    (
        "requires argument \"scope\"",
        "Add scope=\"openid …\": what clients are to ask the provider for, in quotes when there are blanks in it.",
    ),
    (
        "requires argument \"validator\"",
        "Several validators are loaded, so each line has to say which one checks its tokens: validator=NAME.",
    ),
    (
        "oauth_validator_libraries must be set",
        "PostgreSQL has no validator of its own. Install one and name it in oauth_validator_libraries.",
    ),
    (
        "is not permitted by",
        "The line names a validator that is not in oauth_validator_libraries; the names must be equal, path and all.",
    ),
    (
        "cannot be used in combination with delegate_ident_mapping",
        "Either the map decides which role somebody may use, or the validator does. Keep one of the two.",
    ),
    (
        "is only valid for authentication methods",
        "The option belongs to another method than the line's; usually the method is the mistake.",
    ),
    (
        "unrecognized authentication option name",
        "There is no such option. The method oauth knows issuer, scope, validator, map and delegate_ident_mapping; what \
         else a provider wants, such as an audience, the validator has to check.",
    ),
    (
        "not in name=value format",
        "Options are written name=value without blanks around the sign; values with blanks stand in double quotes.",
    ),
    (
        "not supported by this build",
        "This server was built without the method's library.",
    ),
    (
        "invalid authentication method",
        "There is no such method: look for a slip of the pen, or for an option that stands where the method belongs.",
    ),
    (
        "invalid connection type",
        "A line starts with local, host, hostssl, hostnossl, hostgssenc or hostnogssenc.",
    ),
    (
        "cannot match because SSL is disabled",
        "The line is right and never used: turn ssl on, or no client can come by it.",
    ),
    (
        "both host name and CIDR mask",
        "What stands before the slash is no address, so it is taken for a host's name: look for a number above 255.",
    ),
    (
        "invalid IP address",
        "Addresses are written 10.0.0.0/8 or with a netmask in the next column; names of hosts are allowed, a mix is not.",
    ),
    (
        "invalid IP mask",
        "After an address without a length the next column is read as its netmask: write 10.0.0.0/8.",
    ),
    (
        "IP address and mask do not match",
        "One is IPv4 and the other IPv6.",
    ),
    (
        "end-of-line before netmask",
        "An address without a length needs a netmask in the next column: write 10.0.0.0/8.",
    ),
    (
        "end-of-line before authentication method",
        "A column is missing. A local line has type, database, role and method; a host line has an address before the \
         method.",
    ),
    (
        "end-of-line before",
        "A column is missing: type, database, role, address (not for local), method.",
    ),
    (
        "missing entry at end of line",
        "A line of pg_ident.conf has three columns: map, name in the token, role.",
    ),
    (
        "has no subexpressions",
        "The role is \\1, but nothing in the expression stands in parentheses.",
    ),
    (
        "invalid regular expression",
        "What follows the slash is an expression of PostgreSQL's kind; put it in double quotes and look for a bracket \
         without its fellow.",
    ),
    (
        "multiple values",
        "A list stands where one value belongs; a comma makes a list.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_explained() {
        for (line, error) in BROKEN_HBA.iter().chain(BROKEN_IDENT) {
            assert!(explain(error).is_some(), "{line}: {error}");
        }
        assert_eq!(explain("another world"), None);
    }

    #[test]
    fn the_more_special_words_win() {
        let special = explain("end-of-line before netmask specification").expect("known");
        assert!(special.contains("10.0.0.0/8"), "{special}");
    }

    #[test]
    fn the_rules_name_issuer_scope_and_map() {
        let rules = hba("https://localhost:1", "openid postgres");
        assert!(rules.contains(
            "oauth  issuer=\"https://localhost:1\" scope=\"openid postgres\" map=people"
        ));
        assert!(ident().contains("people  \"/^([a-z]+)@example\\.com$\"  \\1"));
    }
}
