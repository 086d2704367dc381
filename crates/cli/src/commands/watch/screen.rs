//! `watch` in a terminal: one screen that is drawn again, and a few keys.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pgclinic_model::document::WatchDocument;
use pgclinic_report::{Document, WatchScreen};
use pgclinic_watch::Thoroughness;
use pgclinic_watch::listen::OverOnDrop;

use super::Arguments;
use super::raw_terminal::{Pressed, RawTerminal, pressed, size};
use super::watching::Watching;
use crate::env::{Env, sleep_unless};
use crate::exit::{Exit, Failure};

/// The alternate screen without a cursor, and back.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";

pub(super) fn run(
    arguments: &Arguments,
    servers: &mut Watching,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let interval = arguments.interval()?;
    let is_over = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| sampled(servers, interval, &is_over, sender));
        let _over = OverOnDrop(&is_over);
        shown(arguments, &receiver, world)
    });
    // While the screen is there nothing may be written over it.
    Arguments::say_failures(servers, world);
    ended
}

/// Samples beside the screen, so that keys are answered while a server is slow.
fn sampled(
    servers: &mut Watching,
    interval: Duration,
    is_over: &AtomicBool,
    sender: Sender<WatchDocument>,
) {
    while !is_over.load(Ordering::Relaxed) {
        if sender.send(servers.sample(Thoroughness::Due)).is_err() {
            return;
        }
        sleep_unless(is_over, interval);
    }
}

fn shown(
    arguments: &Arguments,
    documents: &Receiver<WatchDocument>,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let _as_it_was = RawTerminal::new()?;
    world.stdout.write_all(OPEN.as_bytes())?;
    let ended = keys(arguments, documents, world);
    world.stdout.write_all(CLOSE.as_bytes())?;
    world.stdout.flush()?;
    ended
}

fn keys(
    arguments: &Arguments,
    documents: &Receiver<WatchDocument>,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let mut screen = WatchScreen::default();
    let mut document: Option<WatchDocument> = None;
    let mut drawn = (0, 0);
    loop {
        let mut is_stale = false;
        if let Ok(newer) = documents.try_recv() {
            if let Document::Watch(own) = arguments.closed(newer, world)? {
                document = Some(own);
            }
            is_stale = true;
        }
        match pressed(world.stdin)? {
            Pressed::Quit => return Ok(Exit::Healthy),
            Pressed::Key(key) => {
                if let Some(document) = &document {
                    screen.press(key, document);
                }
                is_stale = true;
            }
            Pressed::Nothing => {}
        }
        if world.is_interrupted() {
            return Ok(Exit::Interrupted);
        }
        let terminal = world.terminal;
        let usual = (usize::from(terminal.width), usize::from(terminal.height));
        let now = size().unwrap_or(usual);
        if is_stale || drawn != now {
            drawn = now;
            let lines = match &document {
                Some(document) => screen.lines(document, now.0, now.1),
                None => vec!["the servers are asked for the first time".to_owned()],
            };
            draw(&lines, world)?;
        }
    }
}

/// Over what stands there, so that nothing flickers.
fn draw(lines: &[String], world: &mut Env<'_>) -> Result<(), Failure> {
    let frame = format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"));
    world.stdout.write_all(frame.as_bytes())?;
    world.stdout.flush()?;
    Ok(())
}
