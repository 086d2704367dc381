//! `watch --listen`: what is served is made of the last sample when somebody asks for it.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pgclinic_model::document::WatchDocument;
use pgclinic_report::{Document, Exposition, Options, by_name, watch_metrics};
use pgclinic_watch::Thoroughness;
use pgclinic_watch::listen::{Access, OverOnDrop, PageKind, Pages, SharedPages, serve};

use super::Arguments;
use super::watching::Watching;
use crate::env::{Env, sleep_unless};
use crate::exit::{Exit, Failure};

/// Where it listens, and to whom.
pub(super) struct Place {
    pub(super) address: SocketAddr,
    pub(super) access: Access,
}

pub(super) fn run(
    arguments: &Arguments,
    place: &Place,
    servers: &mut Watching,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let Place { address, access } = place;
    let failed = |error| Failure::new(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let scheme = if access.tls.is_some() {
        "https"
    } else {
        "http"
    };
    world.say(&format!(
        "watch: {scheme}://{bound}/ and {scheme}://{bound}/metrics"
    ));
    let (shared, is_over) = (SharedPages::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &shared, access, &is_over));
        let over = OverOnDrop(&is_over);
        let ended = renewed(arguments, servers, &shared, world);
        drop(over);
        let served = server.join();
        ended?;
        match served {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    Ok(if world.is_interrupted() {
        Exit::Interrupted
    } else {
        Exit::Healthy
    })
}

/// Samples until somebody wants it to end, or until all that was asked for is done.
fn renewed(
    arguments: &Arguments,
    servers: &mut Watching,
    shared: &SharedPages,
    world: &mut Env<'_>,
) -> Result<(), Failure> {
    let interval = arguments.interval()?;
    let mut left = arguments.samples.unwrap_or(u64::MAX);
    while left > 0 && !world.is_interrupted() {
        let document = servers.sample(Thoroughness::Due);
        let pages = pages(arguments, document, interval, world)?;
        *shared.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pages));
        Arguments::say_failures(servers, world);
        left -= 1;
        sleep_unless(&world.interrupted, interval);
    }
    Ok(())
}

fn pages(
    arguments: &Arguments,
    document: WatchDocument,
    interval: Duration,
    world: &Env<'_>,
) -> Result<Pages, Failure> {
    let document = arguments.closed(document, world)?;
    let seconds = interval.as_secs().max(1);
    let refresh_s = u32::try_from(seconds).unwrap_or(u32::MAX);
    Ok(Pages::new(move |kind| page(&document, kind, refresh_s)))
}

fn page(document: &Document, kind: PageKind, refresh_s: u32) -> Option<String> {
    let options = Options {
        refresh_s: Some(refresh_s),
        ..Options::default()
    };
    let metrics = |exposition| match document {
        Document::Watch(own) => Some(watch_metrics(own, exposition)),
        _ => None,
    };
    match kind {
        PageKind::Overview => rendered("html", document, &options),
        PageKind::Json => rendered("json", document, &options),
        PageKind::Prometheus => metrics(Exposition::Prometheus),
        PageKind::OpenMetrics => metrics(Exposition::OpenMetrics),
    }
}

/// Nothing is written to but memory: what fails is no document of this format.
fn rendered(format: &str, document: &Document, options: &Options<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    by_name(format)?
        .render(document, options, &mut bytes)
        .ok()?;
    String::from_utf8(bytes).ok()
}
