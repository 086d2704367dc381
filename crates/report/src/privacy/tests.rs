//! What becomes of texts under one key.

#![allow(clippy::string_slice, reason = "a test that panics has failed")]

use super::names::Names;
use super::pseudonyms::{Kind, RedactionKey};
use super::{paths, prose};

fn key() -> RedactionKey {
    RedactionKey::from_secret(b"a key that nobody guesses")
}

/// Pseudonyms as `{kind}`.
fn without_hashes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('-') {
        let (before, after) = rest.split_at(at);
        let is_hash = after
            .get(1..9)
            .is_some_and(|hash| hash.chars().all(|c| c.is_ascii_hexdigit()));
        if is_hash {
            let start = before
                .rfind(|c: char| !c.is_alphabetic())
                .map_or(0, |at| at + 1);
            out.push_str(&format!("{}{{{}}}", &before[..start], &before[start..]));
            rest = &after[9..];
        } else {
            out.push_str(before);
            out.push('-');
            rest = &after[1..];
        }
    }
    out + rest
}

fn said(text: &str) -> String {
    let key = key();
    let mut names = Names::new(&key);
    names.learn(Kind::Database, "acme-prod");
    names.learn(Kind::Relation, "ledger");
    names.learn(Kind::Relation, "Odd Name");
    names.learn(Kind::Column, "value");
    names.learn(Kind::Schema, "acmeschema");
    names.learn_of_the_system("pg_statistic_ext_relid_index");
    paths::learn_target(&mut names, "/srv/acme data/main");
    names.settle();
    without_hashes(&prose::redacted(&names, text))
}

#[test]
fn names_go_and_words_stay() {
    let cases = [
        (
            "the entry's key is not that of its row (7,3) in public.ledger",
            "the entry's key is not that of its row (7,3) in public.{relation}",
        ),
        (
            "index \"zyxw_pkey\" of acmeschema.ledger, block 7",
            "index \"{relation}\" of {schema}.{relation}, block 7",
        ),
        (
            "ERROR:  invalid page in block 7 of relation \"base/5/16384\"",
            "ERROR:  invalid page in block 7 of relation \"base/5/16384\"",
        ),
        (
            "the value of column value of public.\"Odd Name\" in acme-prod",
            "the value of column {column} of public.\"{relation}\" in {database}",
        ),
        (
            "REINDEX INDEX CONCURRENTLY \"Odd Name\".\"zyxw\"",
            "REINDEX INDEX CONCURRENTLY \"{relation}\".\"{name}\"",
        ),
        (
            "pgclinic salvage '/srv/acme data/main' --database acme-prod --relation public.zyxw",
            "pgclinic salvage '/{path}/{path}/{path}' --database {database} --relation public.{relation}",
        ),
        (
            "pg_statistic_ext_relid_index and pg_toast.pg_toast_16390 at LSN 0/16B3748",
            "pg_statistic_ext_relid_index and pg_toast.pg_toast_16390 at LSN 0/16B3748",
        ),
        (
            "pg_wal/000000010000000000000002 of postgres://zed@db.zyxw.example:5433/zyxw",
            "pg_wal/000000010000000000000002 of postgres://{role}@{host}:5433/{database}",
        ),
        (
            "the order of libc's locale \"de_DE.utf8\" and of collation \"zyxw\"",
            "the order of libc's locale \"de_DE.utf8\" and of collation \"{name}\"",
        ),
        ("10.0.0.7 runs 18.6", "{host} runs 18.6"),
        ("zyxw/public.zyxw.csv", "{path}/{path}.csv"),
    ];
    for (text, expected) in cases {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn a_name_has_one_pseudonym_under_one_key_and_others_under_others() {
    let (one, other) = (key(), RedactionKey::from_secret(b"another key, as long"));
    let of = |key: &RedactionKey| key.pseudonym(Kind::Relation, "ledger");
    assert_eq!(of(&one), of(&key()));
    assert_ne!(of(&one), of(&other));
    assert_ne!(of(&one), one.pseudonym(Kind::Relation, "ledger2"));
    let name = one.pseudonym(Kind::Name, "ledger");
    assert_eq!(name.split('-').next_back(), of(&one).split('-').next_back());
}
