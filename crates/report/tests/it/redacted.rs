//! Documents of every schema with pseudonyms: still documents, and without the names in them.

use pgclinic_report::{Document, Options, RedactionKey, by_name, redacted};
use serde_json::Value;

use crate::common;

/// Names, hosts and directories of the documents that tests print, none of which is a word.
const NAMES: [&str; 5] = ["/var/lib", "public.docs", "docs_pkey", "bench1", "db7"];

fn documents() -> Vec<Value> {
    vec![
        common::healthy(),
        common::damaged(),
        common::incomplete(),
        common::inspect(),
        common::drill(),
        common::blind(),
        common::rehearsal(),
        common::salvaged(),
        common::experiment(),
    ]
}

fn read(document: &Value) -> Document {
    Document::from_json(document.to_string().as_bytes()).expect("a document")
}

fn key() -> RedactionKey {
    RedactionKey::from_secret(b"a key of sixteen bytes, or more")
}

fn printed(document: &Document, format: &str) -> String {
    let mut out = Vec::new();
    let format = by_name(format).expect("a format");
    let written = format.render(document, &Options::default(), &mut out);
    written.expect("memory takes all bytes");
    String::from_utf8(out).expect("all formats are text")
}

#[test]
fn every_document_can_be_redacted_and_names_nobody() {
    let mut named = 0;
    for plain in documents() {
        let plain = read(&plain);
        let without = redacted(&plain, &key()).expect("a document of the same schema");
        assert_eq!(without.schema(), plain.schema());
        for format in ["json", "text", "html"] {
            let (plain, without) = (printed(&plain, format), printed(&without, format));
            for name in NAMES {
                named += plain.matches(name).count();
                assert!(!without.contains(name), "{name} in {format}: {without}");
            }
        }
    }
    assert!(named > 50, "{named} names were there to be found");
}

#[test]
fn the_same_key_gives_the_same_document_and_a_second_time_changes_nothing() {
    for plain in documents() {
        let plain = read(&plain);
        let once = redacted(&plain, &key()).expect("a document");
        assert_eq!(redacted(&plain, &key()).expect("a document"), once);
        let other = RedactionKey::from_secret(b"another key of that length");
        assert_eq!(redacted(&once, &other).expect("a document"), once);
        assert!(once.contents().redacted && !once.contents().names);
    }
}

#[test]
fn a_document_says_what_it_holds() {
    let mut damaged = common::damaged();
    damaged["findings"][0]["facts"]["shown_values"] = "id is 5 in the entry".into();
    damaged["evidence"] = Value::Array(Vec::new());
    let mut document = read(&damaged);
    let contents = document.contents();
    assert!(contents.names && contents.values && !contents.pages);
    document.withhold_values();
    assert!(!document.contents().values);
    let page = read(&common::inspect()).contents();
    assert!(page.names && page.values && page.pages);
}
