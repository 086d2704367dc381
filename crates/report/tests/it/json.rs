//! The master form comes back as it went.

use crate::common;

use pgclinic_report::{Document, Options};
use serde_json::Value;

#[test]
fn every_document_comes_back_the_same() {
    for document in [
        common::damaged(),
        common::inspect(),
        common::drill(),
        common::blind(),
        common::rehearsal(),
        common::experiment(),
    ] {
        let read = Document::from_json(document.to_string().as_bytes()).expect("a document");
        for pretty in [true, false] {
            let options = Options {
                pretty,
                ..Options::default()
            };
            let text = common::render_with("json", &document, &options);
            assert!(text.ends_with("}\n"));
            let again = Document::from_json(text.as_bytes()).expect("its own output");
            assert_eq!(again, read);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(value["schema"], document["schema"]);
        }
    }
}

#[test]
fn keys_stand_in_the_order_of_the_schema() {
    let options = Options {
        pretty: false,
        ..Options::default()
    };
    let text = common::render_with("json", &common::healthy(), &options);
    assert!(
        text.starts_with("{\"schema\":\"pgclinic.check/1\",\"tool\":"),
        "{text}"
    );
}

#[test]
fn what_is_no_document_gets_a_sentence() {
    let error = |text: &str| Document::from_json(text.as_bytes()).expect_err("no document");
    let unknown = error("{\"schema\": \"pgclinic.check/9\"}").to_string();
    assert!(unknown.starts_with("the document's schema is \"pgclinic.check/9\"; this version"));
    let malformed = error("{\"schema\": \"pgclinic.check/1\"}").to_string();
    assert!(
        malformed.contains("does not hold it: missing field"),
        "{malformed}"
    );
    let other = error("[]").to_string();
    assert!(
        other.starts_with("this is no pgclinic document in JSON"),
        "{other}"
    );
}
