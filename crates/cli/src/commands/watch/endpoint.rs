//! `watch --listen`: what is served is made once an interval, whoever asks.

use std::net::{SocketAddr, TcpListener};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgclinic_model::document::WatchDocument;
use pgclinic_report::{Document, Exposition, Options, by_name, watch_metrics};
use pgclinic_watch::Thoroughness;
use pgclinic_watch::listen::{Access, Pages, SharedPages, serve};

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
        let ended = renewed(arguments, servers, &shared, world);
        is_over.store(true, Ordering::Relaxed);
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
        *shared.write().unwrap_or_else(PoisonError::into_inner) = pages;
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
    let options = Options {
        refresh_s: Some(u32::try_from(seconds).unwrap_or(u32::MAX)),
        ..Options::default()
    };
    let Document::Watch(own) = &document else {
        return Err(Failure::new("the document is not one of watch"));
    };
    Ok(Pages {
        page: rendered("html", &document, &options)?,
        json: rendered("json", &document, &options)?,
        prometheus: watch_metrics(own, Exposition::Prometheus),
        openmetrics: watch_metrics(own, Exposition::OpenMetrics),
    })
}

fn rendered(format: &str, document: &Document, options: &Options<'_>) -> Result<String, Failure> {
    let format = by_name(format).ok_or_else(|| Failure::new(format!("no format {format}")))?;
    let mut bytes = Vec::new();
    format.render(document, options, &mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}
