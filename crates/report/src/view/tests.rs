//! Whatever stands in a view, no printer lets it out of its place.

use super::*;
use crate::formats::{html, text};
use crate::view::picture::{ForkMap, Histogram, Picture, Shares, Space, Strip, StripMark, Treemap};

const HOSTILE: &str = "</script><img src=x onerror='alert(1)'>\"\u{1b}[2J\r\n\u{202e}";

fn looks() -> Words {
    let looks = [
        Look::Plain,
        Look::Strong,
        Look::Code,
        Look::Server,
        Look::Quiet,
        Look::Place,
        Look::State,
        Look::Preview,
        Look::Wrong,
        Look::Right,
        Look::Tag(Tone::Bad),
        Look::Rule,
        Look::Link(HOSTILE.into()),
        Look::Share(0.5),
        Look::Spark(vec![0.0, f64::NAN, 1.0]),
        Look::Target,
    ];
    looks.into_iter().fold(Words::default(), |all, look| {
        all.and(look, HOSTILE).tip(HOSTILE)
    })
}

fn parts() -> Vec<Block> {
    let frames = [
        Frame::Section,
        Frame::PageSection,
        Frame::Relation,
        Frame::Card(Tone::Warn),
        Frame::Finding("damage"),
        Frame::Fold(Fold::Item, FoldState::No),
    ];
    let parts = frames.map(|frame| {
        let inside = Part::new(frame, looks()).about(looks()).of(Vec::new());
        let part = Part::new(frame, looks()).about(looks()).id("safe");
        part.of(vec![inside])
    });
    parts.into()
}

fn pictures() -> Vec<Block> {
    let map = ForkMap {
        first_missing: None,
        path: HOSTILE.into(),
        fork: HOSTILE.into(),
        blocks: 9,
        map: crate::block_map::block_map(9, &[[1, 2]]),
        anchors: Default::default(),
    };
    let bars = Histogram {
        caption: HOSTILE,
        bars: vec![(1, HOSTILE.into())],
        ends: [HOSTILE.into(), HOSTILE.into()],
    };
    let shares = Shares {
        label: "its bytes",
        total: 1,
        parts: vec![(1, "l", "all")],
    };
    let points = Picture::Scatter(HOSTILE, vec![[1, 2]]);
    let strip = Picture::Strip(Strip {
        len: 8,
        ranges: Vec::new(),
        marks: vec![StripMark {
            bytes: 1..2,
            words: HOSTILE.into(),
            link: Some(HOSTILE.into()),
        }],
    });
    let treemap = Picture::Treemap(Treemap {
        tiles: vec![Space {
            name: HOSTILE.into(),
            class: "h",
            bytes: 9,
            freed: 3,
            link: Some(HOSTILE.into()),
        }],
    });
    let pictures = [
        strip,
        treemap,
        Picture::Map(map),
        Picture::Histogram(bars),
        Picture::Shares(shares),
        points,
    ];
    pictures.map(Block::Picture).into()
}

fn everything() -> View {
    let step = Step {
        label: HOSTILE.into(),
        words: looks(),
        blocks: vec![Block::Command(HOSTILE.into())],
    };
    let steps = Steps {
        title: "What to do",
        column: 4,
        steps: vec![step],
    };
    let meaning = Meaning {
        sentence: HOSTILE.into(),
        next: Next::default().and(HOSTILE, HOSTILE),
    };
    let verdict = Verdict::new(Tone::Bad, HOSTILE, looks()).beside(HOSTILE);
    let verdict = verdict.about(looks()).meaning(meaning);
    let row = Row::of(vec![looks()]).marked(HOSTILE);
    let table = Table::new(vec![left(HOSTILE)], [row]).style(Style::Board);
    let range = HexRange {
        bytes: [0, 4],
        label: HOSTILE.into(),
        part: HOSTILE.into(),
    };
    let dump = Dump {
        page: vec![1; 32],
        ranges: vec![range],
        marks: vec![(2..3, HOSTILE.into())],
    };
    let mut blocks = vec![
        Block::Verdict(verdict.more(vec![looks()])),
        Block::Text(ParagraphStyle::Loud, looks()),
        Block::Text(ParagraphStyle::Message, looks()),
        Block::Facts(vec![("a fact", looks())]),
        Block::Reasons(vec![(looks(), looks())]),
        Block::Steps(steps),
        Block::Table(table),
        Block::Command(HOSTILE.into()),
        Block::Rules(vec![(HOSTILE.into(), None)]),
        Block::Dump(dump),
    ];
    blocks.extend(entries(4, [(HOSTILE, looks())]));
    blocks.extend(list([looks()]));
    blocks.extend(parts());
    blocks.extend(pictures());
    let tool = Tool {
        name: HOSTILE.into(),
        version: HOSTILE.into(),
        started: Some(HOSTILE.into()),
        host: Some(HOSTILE.into()),
        contains: None,
    };
    View::new(HOSTILE, HOSTILE, HOSTILE, &tool, blocks)
}

#[test]
fn a_page_holds_no_tag_of_a_document() {
    let mut page = Vec::new();
    html::write(&everything(), &mut page).expect("memory takes all bytes");
    let page = String::from_utf8(page).expect("UTF-8");
    assert!(!page.contains("<img"), "a name became a tag");
    assert!(!page.contains(['\u{1b}', '\r', '\u{202e}']));
    assert_eq!(page.matches("</script>").count(), 1);
    for line in page.lines().filter(|line| line.contains("onerror=")) {
        assert!(line.contains("onerror=&#39;"), "{line}");
    }
}

#[test]
fn a_terminal_gets_no_sign_of_a_document() {
    let mut lines = Vec::new();
    let options = Options::default();
    text::write(&everything(), &options, &mut lines).expect("memory takes all bytes");
    let lines = String::from_utf8(lines).expect("UTF-8");
    let is_sign = |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
    assert!(!lines.contains(is_sign), "{lines:?}");
}
