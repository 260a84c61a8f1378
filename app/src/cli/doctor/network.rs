//! The network of an examination: if the target is on this machine, emulated links of 50 ms that hold acknowledgements.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lab::doctor::{
    Diagnosis, Failure, Network, NetworkPath, Plan, SampleFilter, Tuner, Unchanged, Watch, examine,
};
use lab::fetch::Lookup;
use link::via::{self, Far, Wanted};
use link::{LOCALHOST_PORTS, Link, Options, Spec};
use sys::os_error;

use super::NAME;
use super::trials::Trials;
use super::watch::Terminal;
use crate::cli::output::fail;

/// Examines a target and calls `ended` with the diagnosis, and whether a signal ended it; returns the status of
/// `ended`. With a link, this happens in another process.
pub(super) fn examined(
    plan: &Plan,
    ended: impl Fn(Result<(Diagnosis, bool), String>) -> u8,
) -> ExitCode {
    // The only lookup that no earlier query has cached.
    let mut lookup = match Lookup::of(&plan.url) {
        Ok(lookup) => lookup,
        Err(failure) => return ExitCode::from(ended(Err(failure.to_string()))),
    };
    // Trials on another machine, or without a round trip, show nothing.
    let without = |lookup: &Lookup, why: String| match plan.tries {
        true => ended(Err(format!("{WHERE_TRIED}: {why}"))),
        false => ended(diagnosis(plan, lookup, &Unchanged { why })),
    };
    match carried(&lookup.addresses) {
        Ok(place) => lookup.addresses.swap(0, place),
        Err(why) => return ExitCode::from(without(&lookup, why)),
    }
    let spec = match LINK.parse::<Spec>() {
        Ok(spec) => spec,
        Err(error) => return fail(NAME, &format!("no link \"{LINK}\": {error}")),
    };
    let wanted = Wanted {
        spec,
        far: Far::Here,
        ports: Some(plan.url.port)
            .filter(|port| *port > LOCALHOST_PORTS.1)
            .into_iter()
            .collect(),
    };
    let no_link = |error: io::Error| {
        without(
            &lookup,
            format!("there is no emulated link: {}", os_error(&error)),
        )
    };
    let entered = via::enter(&wanted, |inside| match inside {
        Ok(inside) => match Links::new(&inside.link, plan.tries) {
            Ok(links) => ended(diagnosis(plan, &lookup, &links)),
            Err(why) => ended(Err(why)),
        },
        Err(error) => no_link(error),
    });
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => ExitCode::from(no_link(error)),
        Err(error) => fail(
            NAME,
            &format!("no process for the link: {}", os_error(&error)),
        ),
    }
}

fn diagnosis(
    plan: &Plan,
    lookup: &Lookup,
    network: &dyn Network,
) -> Result<(Diagnosis, bool), String> {
    let terminal = Terminal::new();
    let result = examine(plan, lookup, network, &terminal);
    terminal.clear();
    match result {
        Ok(diagnosis) => Ok((diagnosis, terminal.is_stopped())),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Returns the index of an address of this machine that a link can carry and at which the target answers, or the reason
/// if there is none. It starts no thread, since a process that makes a link must have only one.
fn carried(addresses: &[SocketAddr]) -> Result<usize, String> {
    // An address belongs to this machine when a socket can have it.
    let is_own = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    if !addresses.iter().any(is_own) {
        return Err("the target is not on this machine".to_owned());
    }
    let answers = |address: &SocketAddr| TcpStream::connect_timeout(address, TRIED_FOR).is_ok();
    addresses
        .iter()
        .position(|address| address.is_ipv4() && is_own(address) && answers(address))
        .ok_or_else(|| "the target has no IPv4 address of this machine".to_owned())
}

/// Links to this machine's network: one without a hold, and one for each requested hold.
struct Links<'a> {
    free: &'a Link,
    held: Mutex<HashMap<Duration, Arc<Link>>>,
    trials: Option<Trials<'a>>,
}

impl<'a> Links<'a> {
    /// # Errors
    /// Settings are to be tried, and cannot be now.
    fn new(free: &'a Link, tries: bool) -> Result<Self, String> {
        Ok(Self {
            free,
            held: Mutex::default(),
            trials: tries.then(|| Trials::begin(free)).transpose()?,
        })
    }

    fn link_with_hold(&self, hold: Duration) -> Result<Arc<Link>, Failure> {
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = all.get(&hold) {
            return Ok(Arc::clone(link));
        }
        let options = Options {
            client_ack_hold: Some(hold),
            ..self.free.options().clone()
        };
        let made = Link::to_here(options);
        let link =
            made.map_err(|error| Failure::other(format!("no link: {}", os_error(&error))))?;
        let link = Arc::new(link);
        all.insert(hold, Arc::clone(&link));
        Ok(link)
    }
}

impl Network for Links<'_> {
    fn round_trip(&self) -> Option<Duration> {
        Some(self.free.round_trip())
    }

    fn holds(&self) -> &[Duration] {
        &HOLDS
    }

    fn tuner(&self) -> Option<&dyn Tuner> {
        self.trials.as_ref().map(|trials| trials as &dyn Tuner)
    }

    fn description(&self) -> String {
        let late = self.free.lateness();
        format!(
            "an emulated link of {} ms that holds acknowledgements; late by {:.2} ms (p99), {:.2} (worst){}",
            self.free.round_trip().as_millis(),
            late.p99.as_secs_f64() * 1000.0,
            late.worst.as_secs_f64() * 1000.0,
            late.remarks()
        )
    }

    fn run(
        &self,
        network_path: NetworkPath,
        task: &mut (dyn FnMut(&dyn SampleFilter) + Send),
    ) -> Result<(), Failure> {
        match network_path {
            NetworkPath::Direct => Unchanged::default().run(network_path, task)?,
            NetworkPath::Delayed(None) => self.free.in_client(|| task(&OnTime(self.free))),
            NetworkPath::Delayed(Some(hold)) => {
                let link = self.link_with_hold(hold)?;
                link.in_client(|| task(&OnTime(&link)));
            }
        }
        Ok(())
    }
}

/// Judges samples by the link that they came over.
struct OnTime<'a>(&'a Link);

impl SampleFilter for OnTime<'_> {
    fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
        self.0.are_void(samples, VOID_AFTER)
    }
}

/// Why a trial is refused begins with this.
const WHERE_TRIED: &str =
    "--try changes settings of this machine's kernel and measures them over an emulated link";
/// The link of an examination: far enough for a round trip to stand out from everything else, near enough for hundreds of
/// requests in a minute.
const LINK: &str = "50ms";
/// Acknowledgements are held for as long as RFC 1122 has receivers hold them in practice (200 ms), and as Linux does at least.
const HOLDS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(40)];
/// A sample is void when the link delivered a packet later than this meanwhile: a tenth of the round trip.
const VOID_AFTER: Duration = Duration::from_millis(5);
/// Timeout of a connection that only tests whether the port is open.
const TRIED_FOR: Duration = Duration::from_secs(2);
