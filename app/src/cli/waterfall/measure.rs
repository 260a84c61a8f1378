//! Visits of a URL: by a browser or by the clients of the lab, also through an emulated link.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::browser::{self, Run};
use lab::client::{Protocol, Url};
use lab::fetch::KeyLog;
use lab::page::View;
use lab::wire::{self, Kept};
use link::via::{self, Far, Inside, Wanted};
use link::{LOCALHOST_PORTS, Spec};
use sys::os_error;
use sys::signal::Signals;

use super::evidence::{self, Unnamed};
use super::options::{NAME, Options};
use super::views::Visits;
use crate::cli::carried::refused;
use crate::cli::interruption::interruptions;
use crate::cli::output::fail;
use crate::cli::status::{FAILED, INTERRUPTED};
use crate::cli::values::trust;

/// Why there are no visits.
#[derive(Debug)]
pub(super) enum Failure {
    /// A signal ended the visits.
    Interrupted,
    /// A sentence.
    Why(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Why(why)
    }
}

/// Measures a page and hands the visits to `show`, which prints them; returns the exit status. With `--via` both happen in a
/// process of its own, behind the link.
pub(super) fn measure(
    options: &Options,
    url: &Url,
    show: impl Fn(Result<Visits, Failure>) -> u8,
) -> u8 {
    let Some(mut spec) = spec(options) else {
        return show(visits(options, url, None));
    };
    if let Some(why) = refused(url) {
        return show(Err(Failure::Why(why)));
    }
    let unnamed = match spec.pcap {
        Some(_) => None,
        None => Unnamed::create(),
    };
    spec.pcap = spec.pcap.or_else(|| unnamed.as_ref().map(Unnamed::path));
    let port = Some(url.port).filter(|port| *port > LOCALHOST_PORTS.1);
    let wanted = Wanted {
        spec,
        far: Far::Here,
        ports: port.into_iter().collect(),
    };
    let no_link = |error: io::Error| {
        Failure::Why(format!(
            "cannot create the link for --via: {}",
            os_error(&error)
        ))
    };
    let entered = via::enter(&wanted, |inside| {
        let entered = inside.and_then(|inside| {
            inside.link.client().enter()?;
            Ok(inside)
        });
        let inside = match entered {
            Ok(inside) => inside,
            Err(error) => return show(Err(no_link(error))),
        };
        let status = show(visits(options, url, Some((&inside, unnamed.is_none()))));
        match inside.link.captured() {
            // A file for evidence alone is not the caller's.
            Err(why) if status != INTERRUPTED && unnamed.is_none() => {
                let _ = fail(NAME, &why);
                FAILED
            }
            _ => status,
        }
    });
    entered.unwrap_or_else(|error| show(Err(no_link(error))))
}

/// Returns the requested link. If only a capture is requested, it is a link without delay.
fn spec(options: &Options) -> Option<Spec> {
    let Some(pcap) = &options.pcap else {
        return options.via.clone();
    };
    let plain = || NO_DELAY.parse().ok();
    let mut spec: Spec = options.via.clone().or_else(plain)?;
    spec.pcap = Some(pcap.clone());
    Some(spec)
}

/// Visits the page, behind a link if there is one. The flag of the link is true if its packets have a file with a name.
fn visits(options: &Options, url: &Url, link: Option<(&Inside, bool)>) -> Result<Visits, Failure> {
    let began = Instant::now();
    let mut watch = Watch::new().map_err(|error| os_error(&error))?;
    let visited = match options.wire {
        true => by_wire(options, url, &mut watch),
        false => by_browser(options, url, &mut watch),
    };
    watch.clear();
    let runs = match visited {
        Ok(runs) => runs,
        Err(_) if watch.is_over => return Err(Failure::Interrupted),
        Err(why) => return Err(Failure::Why(why)),
    };
    let mut visits = Visits::of_runs(runs);
    if let Some((inside, has_name)) = link {
        visits.add_note(&conditions(inside, began, has_name));
        evidence::add(&mut visits, inside, keys(options).as_deref());
    }
    Ok(visits)
}

fn by_browser(options: &Options, url: &Url, watch: &mut Watch) -> Result<Vec<Run>, String> {
    // The browser appends to an existing file. A file that it creates is readable by all users.
    key_log(options)?;
    let of_browser = browser::Options {
        browser: options.browser.clone(),
        warm: options.warm,
        runs: options.runs(),
        timeout: options.timeout(),
        insecure: options.insecure,
        http2: options.protocol != Some(Some(Protocol::H1)),
        key_log: keys(options),
        filmstrip: options.html.is_some(),
        ..browser::Options::new(&url.to_string())
    };
    browser::visits(&of_browser, &mut |step| {
        watch.goes_on(|| line(step.runs, step.view, step.resources, step.elapsed))
    })
}

fn by_wire(options: &Options, url: &Url, watch: &mut Watch) -> Result<Vec<Run>, String> {
    let of_wire = wire::Options {
        protocol: options.protocol.flatten(),
        trust: trust(options.cacert.as_deref(), options.insecure)?,
        timeout: options.timeout(),
        key_log: key_log(options)?.map(Arc::new),
        ..wire::Options::new(url.clone())
    };
    let mut runs = Vec::new();
    for run in 0..options.runs() {
        let mut kept = Kept::default();
        let mut visit = |view| {
            wire::visit(&of_wire, &mut kept, &mut |step| {
                watch.goes_on(|| line((run, options.runs()), view, step.resources, step.elapsed))
            })
        };
        let cold = visit(View::Cold)?;
        let warm = options.warm.then(|| visit(View::Warm)).transpose()?;
        runs.push(Run { cold, warm });
    }
    Ok(runs)
}

/// Creates the requested file for TLS secrets.
fn key_log(options: &Options) -> Result<Option<KeyLog>, String> {
    let made = keys(options).map(|path| {
        let made = KeyLog::create(&path);
        made.map_err(|error| format!("cannot write {}: {}", path.display(), os_error(&error)))
    });
    made.transpose()
}

/// The file of secrets beside one of packets.
fn keys(options: &Options) -> Option<PathBuf> {
    let beside = |pcap: &PathBuf| {
        let mut name = pcap.as_os_str().to_owned();
        name.push(".keys");
        name.into()
    };
    options.pcap.as_ref().map(beside)
}

/// The link, and how exact it was meanwhile.
fn conditions(inside: &Inside, began: Instant, has_name: bool) -> String {
    let mut spec = inside.spec.clone();
    spec.pcap = spec.pcap.filter(|_| has_name);
    let late = inside.link.worst_between(began, Instant::now());
    let counters = inside.link.counters();
    format!(
        "behind an emulated link, {}; {} packets, {} dropped, delivered at most {:.2} ms late",
        spec,
        counters.packets(),
        counters.dropped(),
        late.as_secs_f64() * 1000.0
    )
}

/// Looks for signals while visits are in progress, and shows on standard error how far they are while somebody watches.
struct Watch {
    signals: Signals,
    /// A signal was received.
    is_over: bool,
    is_watched: bool,
    is_there: bool,
    shown: Instant,
}

impl Watch {
    fn new() -> io::Result<Self> {
        Ok(Self {
            signals: interruptions()?,
            is_over: false,
            is_watched: io::stderr().is_terminal(),
            is_there: false,
            shown: Instant::now(),
        })
    }

    /// Returns whether to continue the visits.
    fn goes_on(&mut self, line: impl FnOnce() -> String) -> bool {
        self.is_over |= matches!(self.signals.receive(), Ok(Some(_)));
        if self.is_watched && self.shown.elapsed() >= SHOWN_EVERY {
            (self.is_there, self.shown) = (true, Instant::now());
            let _ = write!(io::stderr(), "\r{}\x1b[K", line());
        }
        !self.is_over
    }

    fn clear(&self) {
        if self.is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `run 2 of 5, warm view: 34 resources, 1.2 s`.
fn line((over, all): (usize, usize), view: View, resources: usize, elapsed: Duration) -> String {
    let (run, seconds) = ((over + 1).min(all), elapsed.as_secs_f64());
    let view = view.name();
    format!("run {run} of {all}, {view} view: {resources} resources, {seconds:.1} s")
}

/// A link without effects, for its capture.
const NO_DELAY: &str = "0ms";
/// Time between two lines that say how far visits are.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_written_by_a_link_without_delay_where_none_is_given() {
        let link = |words: &str| {
            let options = crate::cli::values::parsed::<Options>(words).expect("it is accepted");
            (spec(&options), keys(&options))
        };
        let spec = |text: &str| text.parse::<Spec>().ok();
        assert_eq!(link("http://h/"), (None, None));
        assert_eq!(link("http://h/ --via 5ms"), (spec("5ms"), None));
        let keys = Some("a/p.keys".into());
        let (plain, delayed) = ("0ms,pcap=a/p", "5ms,pcap=a/p");
        assert_eq!(link("http://h/ --pcap a/p"), (spec(plain), keys.clone()));
        assert_eq!(
            link("http://h/ --pcap a/p --via 5ms"),
            (spec(delayed), keys)
        );
    }

    #[test]
    fn the_line_says_how_far_visits_are() {
        let line = line((1, 5), View::Warm, 34, Duration::from_millis(1250));
        assert_eq!(line, "run 2 of 5, warm view: 34 resources, 1.2 s");
    }
}
