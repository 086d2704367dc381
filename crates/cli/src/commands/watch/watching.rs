//! The servers that a run watches, and whoever hears of their alerts.

use std::time::{SystemTime, UNIX_EPOCH};

use pgclinic_model::document::WatchDocument;
use pgclinic_report::Document;
use pgclinic_watch::{Alarms, Thoroughness, WatchedServers};

use super::deliver::{Couriers, Receiver};
use crate::privacy::PrivacyArgs;

/// By which clock alerts are judged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    /// That of this machine.
    Real,
    /// Each sample is so many seconds after the one before: for tests of a day within minutes.
    Steps(f64),
}

/// Servers, with the judgement of their alerts where somebody wants to hear of them.
pub(super) struct Watching {
    servers: WatchedServers,
    alarms: Option<(Alarms, Couriers)>,
    privacy: PrivacyArgs,
    clock: Clock,
    samples: u32,
    begun: f64,
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

impl Watching {
    /// Alerts are judged where there is a receiver.
    pub(super) fn new(
        servers: WatchedServers,
        receivers: Vec<Receiver>,
        privacy: PrivacyArgs,
        clock: Clock,
    ) -> Self {
        let is_heard = !receivers.is_empty();
        Self {
            servers,
            alarms: is_heard.then(|| (Alarms::new(), Couriers::start(receivers))),
            privacy,
            clock,
            samples: 0,
            begun: now(),
        }
    }

    /// Asks all servers, and sends on what began or ended.
    pub(super) fn sample(&mut self, thoroughness: Thoroughness) -> WatchDocument {
        let mut document = self.servers.sample(thoroughness);
        let now = self.moment();
        if let Some((alarms, couriers)) = &mut self.alarms {
            document.deliveries = couriers.deliveries();
            // What leaves this machine has the pseudonyms that the document has.
            let shown = redacted(&document, &self.privacy);
            for message in alarms.judge(shown.as_ref().unwrap_or(&document), now) {
                couriers.send(&message);
            }
        }
        document
    }

    fn moment(&mut self) -> f64 {
        self.samples = self.samples.saturating_add(1);
        match self.clock {
            Clock::Real => now(),
            Clock::Steps(seconds) => self.begun + f64::from(self.samples) * seconds,
        }
    }

    /// Sends on what waits; what could not be delivered.
    pub(super) fn end(&mut self) -> Vec<String> {
        let couriers = self.alarms.take();
        couriers.map_or_else(Vec::new, |(_, couriers)| couriers.end())
    }

    /// What could not be delivered since it was asked last.
    pub(super) fn failures(&self) -> Vec<String> {
        let couriers = self.alarms.as_ref();
        couriers.map_or_else(Vec::new, |(_, couriers)| couriers.failures())
    }
}

/// Nothing where no pseudonyms were asked for.
fn redacted(document: &WatchDocument, privacy: &PrivacyArgs) -> Option<WatchDocument> {
    if !privacy.is_redacting() {
        return None;
    }
    let mut own = Document::Watch(document.clone());
    // A document that cannot be rewritten says nothing at all.
    let nothing = || WatchDocument {
        targets: Vec::new(),
        ..document.clone()
    };
    Some(match (privacy.redact(&mut own), own) {
        (Ok(()), Document::Watch(own)) => own,
        _ => nothing(),
    })
}
