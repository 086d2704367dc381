//! `watch --listen`: what is served is made once an interval, whoever asks.

use std::net::{SocketAddr, TcpListener};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgclinic_model::document::WatchDocument;
use pgclinic_report::{Document, Exposition, Options, by_name, watch_metrics};
use pgclinic_watch::listen::{Pages, SharedPages, serve};
use pgclinic_watch::{Thoroughness, WatchedServers};

use super::Arguments;
use crate::env::{Env, sleep_unless};
use crate::exit::{Exit, Failure};

pub(super) fn run(
    arguments: &Arguments,
    address: SocketAddr,
    servers: &mut WatchedServers,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let failed = |error| Failure::new(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    world.say(&format!(
        "watch: http://{bound}/ and http://{bound}/metrics"
    ));
    let (pages, is_over) = (SharedPages::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &pages, &is_over));
        let ended = renewed(arguments, servers, &pages, world);
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
    servers: &mut WatchedServers,
    pages: &SharedPages,
    world: &Env<'_>,
) -> Result<(), Failure> {
    let interval = arguments.interval()?;
    let mut left = arguments.samples.unwrap_or(u64::MAX);
    while left > 0 && !world.is_interrupted() {
        let document = servers.sample(Thoroughness::Due);
        let pages = pages(arguments, document, interval, world)?;
        *pages.write().unwrap_or_else(PoisonError::into_inner) = pages;
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
