//! What a browser gets.

use crate::common;

use serde_json::{Value, json};

const HOSTILE: &str = "</script><img src=x onerror='alert(1)'>\"\u{1b}";

/// Every text of a document, and so every one that a cluster can choose.
fn poison(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(poison),
        Value::Object(fields) => {
            let kept = [
                "schema",
                "level",
                "verdict",
                "severity",
                "kind",
                "fork",
                "safety",
                "id",
                "caused_by",
                "page",
                "word",
                "better",
                "outcome",
            ];
            let chosen = fields
                .iter_mut()
                .filter(|(key, _)| !kept.contains(&key.as_str()));
            chosen.for_each(|(_, value)| poison(value));
        }
        Value::String(text) => text.push_str(HOSTILE),
        _ => {}
    }
}

#[test]
fn hostile_texts_stay_texts_everywhere() {
    for mut document in [
        common::damaged(),
        common::incomplete(),
        common::inspect(),
        common::drill(),
        common::blind(),
        common::rehearsal(),
        common::experiment(),
        common::salvaged(),
    ] {
        poison(&mut document);
        let page = common::render("html", &document);
        assert!(!page.contains("<img"), "a name became a tag");
        assert!(!page.contains('\u{1b}'));
        assert_eq!(
            page.matches("</script>").count(),
            1,
            "only the page's own script ends"
        );
        assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&quot;"));
        for line in page.lines().filter(|line| line.contains("onerror=")) {
            assert!(line.contains("onerror=&#39;"), "{line}");
        }
    }
}

#[test]
fn nothing_is_asked_of_the_network() {
    for document in [
        common::damaged(),
        common::inspect(),
        common::drill(),
        common::blind(),
        common::rehearsal(),
        common::experiment(),
    ] {
        let page = common::render("html", &document);
        assert!(page.contains("default-src 'none'"));
        for asking in ["http://", "https://", "src=", "@import", "url(", "<link"] {
            let own = page.split("<script>").next().unwrap_or_default();
            let own = own
                .replace("default-src", "")
                .replace("style-src", "")
                .replace("script-src", "");
            assert!(!own.contains(asking), "{asking}");
        }
    }
}

#[test]
fn a_damaged_block_is_marked_on_its_map() {
    let page = common::render("html", &common::damaged());
    assert!(page.contains("<title>blocks 131000-131099: 1 of 100 damaged</title>"));
    assert!(page.contains("A cell is 100 blocks; a crossed one holds damage."));
}

#[test]
fn the_bytes_of_a_damaged_page_carry_labels_and_marks() {
    let page = common::render("html", &common::damaged());
    assert!(page.contains("title=\"pd_lower: pd_lower 8001 is beyond pd_upper 8000\">41 1f</i>"));
    assert!(page.contains("<span class=letters>GET /index.html </span>"));
}

#[test]
fn a_page_of_evidence_that_is_no_page_is_said() {
    let mut document = common::damaged();
    document["evidence"][0]["page"] = json!("not base64!");
    let page = common::render("html", &document);
    assert!(page.contains("bytes of this page are no base64 of a page"));
}

#[test]
fn what_is_folded_is_counted() {
    let mut document = common::damaged();
    let findings: Vec<_> = (0..40)
        .map(|n| common::finding(&format!("x{n}"), "bad-checksum", n))
        .collect();
    document["findings"] = json!(findings);
    document["findings_omitted"] = json!(1234);
    document["findings_total"] = json!(1274);
    let page = common::render("html", &document);
    assert!(page.contains("and 37 more of <code>bad-checksum</code>"));
    assert!(page.contains("1,234 of 1,274 findings were counted and not kept"));
}

#[test]
fn pages_that_are_not_shown_are_counted() {
    let mut document = common::damaged();
    let page = document["evidence"][0].clone();
    document["evidence"] = json!(vec![page; 150]);
    let page = common::render("html", &document);
    assert_eq!(page.matches("<details class=page>").count(), 4);
    assert!(page.contains("The bytes of 146 pages more stand in the JSON document."));
}

#[test]
fn many_arms_are_told_by_what_they_have_alike() {
    let mut document = common::experiment();
    let arm = |number: u64| {
        let jit = if number == 3 { "on" } else { "off" };
        json!({"name": format!("arm{number}"), "version": "PostgreSQL 18.6", "settings": {}, "environment": {"jit": jit}})
    };
    document["arms"] = (1..=6).map(arm).collect();
    let page = common::without_cell_names(&common::render("html", &document));
    let off = "<td><span class=q>jit</span></td><td><code>off</code></td><td>arm1, arm2, arm4, arm5, arm6</td>";
    assert!(page.contains(off), "{page}");
    let on = "<td></td><td><code>on</code></td><td>arm3</td>";
    assert!(page.contains(on), "{page}");
}

#[test]
fn every_raw_file_of_a_run_is_linked_and_a_line_has_its_slope() {
    let mut document = common::experiment();
    let folder = "runs/b01-13-concurrency_0";
    document["runs"][0]["files"] = json!([
        format!("{folder}/run.json"),
        format!("{folder}/load.json"),
        format!("{folder}/server.log"),
        "../elsewhere/server.log"
    ]);
    document["figures"][0]["lines"][1]["slope"] = json!({"each": 0.75, "interval": [0.7, 0.8]});
    let page = common::render("html", &document);
    for name in ["load.json", "server.log"] {
        let link = format!("<a href=\"{folder}/{name}\">{name}</a>");
        assert!(page.contains(&link), "{link}");
    }
    assert!(
        !page.contains("elsewhere"),
        "no link leads out of the directory"
    );
    let slope = "14: each of maintenance_io_concurrency adds 0.75 s [0.7, 0.8]";
    assert!(page.contains(slope));
    assert!(common::render("text", &document).contains(slope));
}

/// All that an account holds stands on its page; columns without a count do not.
#[test]
fn an_account_has_everything_on_its_page() {
    let page = common::without_cell_names(&common::render("html", &common::salvaged()));
    let told = [
        "1,500 rows of 2 tables written",
        "2 lost, 1 partial, 2 carved, 1 mended, 1 damaged page",
        "<h2>Write-ahead log <a class=here",
        "file base/5/16400 is not there",
        "The server went down meanwhile",
        "<td>2</td><td>2026-11-22 08:01:00+00</td><td><code>751:753:751</code></td>",
        "<td>1, 2</td>",
        "3 changes in the write-ahead log could not be applied to its files",
        "block 7, item 3, column body: chunk 2 of its 5 is missing in TOAST",
        "and at 4 places more",
        "2 keys of public.docs_pkey in shop/public.docs.lost_keys.csv",
        "column seen is text: it holds infinity",
        "not written whole, and removed",
        "shop/large_objects.tar",
        "block 1: the page is all zeros",
        "object 70003: bytes 2048 to 4096 were not found",
        "<td>public.docs_id_seq</td>",
        "0 of 1 key hold",
        "1 of 4 tables with as many rows as an index has",
        "public.docs: 500 rows written, public.docs_pkey leads to 498, and 9 to where nothing can be read: up to 7 missing",
        "public.twice: 12 rows written, public.twice_pkey leads to 10: 2 more than it has",
        "public.plain: 7 rows written, not counted: no index has all its rows; pg_class estimates 8",
        "<dt>the schema</dt><dd>the role may not read files</dd>",
        "<dt>tablespace annex</dt>",
    ];
    for words in told {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<th class=n>Dead</th>") && page.contains("<th class=n>Mended</th>"));

    let text = common::render("text", &common::salvaged());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("COUNTS 1 of 4 tables with as many rows"),
        "{text}"
    );
    assert!(text.contains("pg_class estimates 8"), "{text}");

    // A number that is not proven is one by its witnesses, also in the first line.
    let mut about = common::salvaged();
    about["totals"]["lost"] = json!(8549);
    about["lost_by"] = json!([{"witness": "index-keys", "rows": 8541}, {"witness": "rows-per-page", "rows": 3}, {"witness": "pg-class", "rows": 5}]);
    let words =
        "lost about 8,549 rows (8,541 by index keys, 8 by estimate, and more may be missing)";
    let text = common::render("text", &about);
    assert!(
        text.lines().next().is_some_and(|line| line.contains(words)),
        "{text}"
    );
    assert!(common::render("html", &about).contains(words));

    let mut calm = common::salvaged();
    calm["snapshots"] =
        json!([{"number": 1, "transactions": "745:745:", "taken_at": "2026-11-22 08:00:00+00"}]);
    let page = common::render("html", &calm);
    assert!(page.contains("All tables were read in one snapshot"));
    assert!(!page.contains("data-name=\"snapshot\""));
}
