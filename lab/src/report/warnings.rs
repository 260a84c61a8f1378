//! Warnings of a bench: a missed rate, a client at its limit, errors as responses, different statuses of two servers.
//!
//! Source: docs/lab.md, "Warnings".

use super::comparison::answered_alike;
use super::server::ServerReport;
use super::table::list_counts;
use crate::load::{Job, Measured};

/// All warnings but those of an emulated link.
pub(super) fn of(job: &Job, measured: &Measured, servers: &[ServerReport]) -> Vec<String> {
    let mut all = Vec::new();
    for (server, asked) in servers.iter().zip(&job.servers) {
        all.extend(rate(server, asked.plan.rate));
        all.extend(thread(server));
        all.extend(errors(server));
    }
    if measured.busy >= BUSY_LEAST {
        all.push(format!(
            "the processors of this machine were busy for {:.0} % of the time: the client, or another program, limited the \
             figures",
            measured.busy * 100.0
        ));
    }
    if let [first, second] = servers
        && !answered_alike(first, second)
    {
        all.push(format!(
            "{} and {} answered with different statuses ({}; {}): their figures cannot be compared",
            first.name,
            second.name,
            statuses(first),
            statuses(second)
        ));
    }
    all
}

/// The rate was not reached.
fn rate(server: &ServerReport, asked: Option<f64>) -> Option<String> {
    let (asked, sent) = (asked?, server.sent_rate?);
    let name = &server.name;
    (sent < asked * REACHED_LEAST).then(|| {
        format!("{name}: the rate was not reached: {sent:.0} requests a second were sent instead of {asked}")
    })
}

/// A thread of the client had no time left.
fn thread(server: &ServerReport) -> Option<String> {
    let (name, percent) = (&server.name, server.busiest_thread * 100.0);
    (server.busiest_thread >= BUSY_LEAST).then(|| {
        format!(
            "{name}: a thread of the client used a processor for {percent:.0} % of the time: the client limited the \
             figures; --threads adds threads"
        )
    })
}

/// Every response was an error.
fn errors(server: &ServerReport) -> Option<String> {
    let is_error = |class: &String| class.starts_with(['4', '5']);
    let all = !server.statuses.is_empty() && server.statuses.keys().all(is_error);
    let name = &server.name;
    all.then(|| {
        format!(
            "{name}: every response was an error ({}): the figures are of errors only",
            statuses(server)
        )
    })
}

/// `404: 12, 500: 3`.
fn statuses(server: &ServerReport) -> String {
    list_counts(&server.status_codes)
}

/// The share of the time from which on a processor is busy all the time.
const BUSY_LEAST: f64 = 0.95;
/// The share of a rate that counts as reached.
const REACHED_LEAST: f64 = 0.99;
