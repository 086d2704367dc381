//! The servers that a run watches, and whoever hears of their alerts.

use std::time::{SystemTime, UNIX_EPOCH};

use pgclinic_model::document::WatchDocument;
use pgclinic_watch::{Alarms, Thoroughness, WatchedServers};

use super::deliver::{Couriers, Receiver};

/// Servers, with the judgement of their alerts where somebody wants to hear of them.
pub(super) struct Watching {
    servers: WatchedServers,
    alarms: Option<(Alarms, Couriers)>,
}

impl Watching {
    /// Alerts are judged where there is a receiver.
    pub(super) fn new(servers: WatchedServers, receivers: Vec<Receiver>) -> Self {
        let is_heard = !receivers.is_empty();
        Self {
            servers,
            alarms: is_heard.then(|| (Alarms::new(), Couriers::start(receivers))),
        }
    }

    /// Asks all servers, and sends on what began or ended.
    pub(super) fn sample(&mut self, thoroughness: Thoroughness) -> WatchDocument {
        let document = self.servers.sample(thoroughness);
        if let Some((alarms, couriers)) = &mut self.alarms {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0.0, |now| now.as_secs_f64());
            for message in alarms.judge(&document, now) {
                couriers.send(&message);
            }
        }
        document
    }

    /// What could not be delivered since it was asked last.
    pub(super) fn failures(&self) -> Vec<String> {
        let couriers = self.alarms.as_ref();
        couriers.map_or_else(Vec::new, |(_, couriers)| couriers.failures())
    }
}
