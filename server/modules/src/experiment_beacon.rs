//! `experiment_beacon`: serves the script that measures page views, and receives its beacons.
//!
//! GET returns a constant script. POST accepts a beacon. It must come from a page of the same origin, within the rates,
//! and from a user with an assignment that the server recomputes. Each experiment of the user gets one `Visit` in the
//! queue for the store process. All other beacons are refused and counted by reason. Servers of static files announce
//! the length of each body (`server_http::resource_timing`), so that the script can recognise truncated files. Absent:
//! assignment, which is the experiment's, and the format, which is the engine's.
//!
//! Source: docs/beacon.md. nginx has no such directive.

mod limits;
mod origin;
mod reject_reason;
mod script;
mod visit;

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use engines::beacon::{self, BEACON_MAX_BYTES};
use engines::http::{BodyLength, Chunk, FieldId, Method};
use server_base::errlog::Level;
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::InFile;
use server_http::exchange::{Ctx, Exchange};
use server_http::experiments::Arm;
use server_http::meters::{self, Event};
use server_http::module::{Content, Inherit, Module};
use server_http::request_body::{self, CollectOptions, Collected};
use server_http::settings_set::{Conf, inherited};
use server_http::vars::Variable;
use server_http::{reply, settings, variables};

use crate::rtt_map;
use limits::{BeaconRate, Limits, RATE_MAX};
use reject_reason::RejectReason;
use script::SCRIPT;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "experiment_beacon",
    directives: &[ROWS],
    settings: &[<BeaconMain as Conf>::def, <BeaconLoc as Conf>::def],
    variables: VARIABLES,
    finish: Some(finish),
    inherits: &[("experiment_beacon", Inherit::Blocks)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings that exist once.
    pub(crate) struct BeaconMain: Main / PLAIN_MAIN {}
    extra {
        /// The first directive.
        first: Option<Directive>,
        /// All locations with the directive.
        locations: Vec<usize>,
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct BeaconLoc: Location / PLAIN_LOC {}
    extra {
        /// `experiment_beacon`.
        receiver: Option<Arc<Receiver>> = inherited,
    }
}

/// One `experiment_beacon`.
pub(crate) struct Receiver {
    rate: BeaconRate,
    /// Maximum length of a body.
    max_bytes: u64,
    limits: Limits,
}

const VARIABLES: &[Variable] = variables! {
    "beacon_integrity": "value of the attribute \"integrity\" for the script of experiment_beacon"
        => |_, _, _, o| {
            o.extend_from_slice(SCRIPT.integrity.as_bytes());
            true
        };
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Serves the script that measures page views, and receives its beacons; `rate` limits those of a user, `max_size` the length of one.
    directive "experiment_beacon": Contexts::LOCATION, TAKE012, "rate=60r/m max_size=4k", "[rate=rate] [max_size=size]"
        => experiment_beacon;
}

fn experiment_beacon(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let (mut rate, mut max_bytes) = (None, None);
    for word in &d.args {
        let text = word.text.as_slice();
        if let Some(text) = text.strip_prefix(b"rate=") {
            conf::once(d, rate.is_some())?;
            rate = Some(BeaconRate::parse(text).ok_or_else(|| bad_rate(d, word))?);
        } else if let Some(text) = text.strip_prefix(b"max_size=") {
            conf::once(d, max_bytes.is_some())?;
            let size = conf::parse_size(text).filter(|size| SIZES.contains(size));
            max_bytes = Some(size.ok_or_else(|| bad_size(d, word))?);
        } else {
            return Err(ConfError::parameter(d, word));
        }
    }
    let loc = b.conf_mut::<BeaconLoc>();
    conf::once(d, loc.receiver.is_some())?;
    loc.receiver = Some(Arc::new(Receiver {
        rate: rate.unwrap_or(BeaconRate::DEFAULT),
        max_bytes: max_bytes.unwrap_or(BEACON_MAX_BYTES) as u64,
        limits: Limits::shared(),
    }));
    let location = b.location();
    let main = b.conf_mut::<BeaconMain>();
    main.first.get_or_insert_with(|| d.owned_head());
    main.locations.push(location);
    b.set_handler(handle);
    Ok(())
}

fn bad_rate(d: &Directive, word: &Word) -> ConfError {
    let text = format!(
        "invalid rate \"{}\", it must be 1r/m to {RATE_MAX}r/s",
        word.as_str()
    );
    ConfError::word(d, word, text)
}

fn bad_size(d: &Directive, word: &Word) -> ConfError {
    let (least, most) = (SIZES.start(), SIZES.end());
    let text = format!(
        "invalid size \"{}\", it must be {least} to {most} bytes",
        word.as_str()
    );
    ConfError::word(d, word, text)
}

/// Beacons need a store. Responses of hosts of static files get fields for the script.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let Some(first) = b.conf_mut::<BeaconMain>().first.take() else {
        return Ok(());
    };
    if !rtt_map::has_store(b) {
        let text = "needs a \"lab_store\" in \"http\"";
        return Err(ConfError::directive(&first, text));
    }
    if b.experiments.is_empty() {
        let text = "has no effect without an \"experiment\"";
        b.warn(ConfError::directive(&first, text));
    }
    for server in servers_of_files(b) {
        b.resource_timing
            .entry(server)
            .or_default()
            .announces_lengths = true;
    }
    hide_times_of_pages(b);
    Ok(())
}

/// Removes `Timing-Allow-Origin` from servers of pages, unless they are hosts of arms. Scripts of the same origin do
/// not need the field, and other sites could use it to measure the visitor's responses.
fn hide_times_of_pages(b: &mut ConfigBuilder) {
    let arms = b.experiments.iter().flat_map(|it| &it.arms);
    let hosts: Vec<usize> = arms
        .filter_map(|arm| Some(arm.host.as_ref()?.server))
        .collect();
    let locations = &b.main_conf::<BeaconMain>().locations;
    let servers: Vec<usize> = locations.iter().filter_map(|at| b.server_of(*at)).collect();
    for server in servers {
        if !hosts.contains(&server)
            && let Some(timing) = b.resource_timing.get_mut(&server)
        {
            timing.shows_times = false;
        }
    }
}

/// Returns the servers with static files of experiments: hosts of arms, or those of beacons for an experiment without hosts.
fn servers_of_files(b: &ConfigBuilder) -> Vec<usize> {
    let arms: Vec<&Arm> = b.experiments.iter().flat_map(|it| &it.arms).collect();
    let hosts = arms.iter().filter_map(|arm| arm.host.as_ref());
    let mut servers: Vec<usize> = hosts.map(|host| host.server).collect();
    if arms.iter().any(|arm| arm.host.is_none()) {
        let locations = &b.main_conf::<BeaconMain>().locations;
        servers.extend(locations.iter().filter_map(|at| b.server_of(*at)));
    }
    servers
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let Some(receiver) = &x.loc::<BeaconLoc>(&http).receiver else {
        return Content::Declined;
    };
    match x.target.method {
        Method::Get | Method::Head => serve(x, cx),
        Method::Post => match receive(x, cx, receiver) {
            Ok(content) => content,
            Err(reason) => refuse(x, reason),
        },
        _ => Content::Status(405),
    }
}

/// Answers with the script.
fn serve(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let script = &*SCRIPT;
    x.reply.status = 200;
    x.reply.content_type.set(b"text/javascript");
    x.reply.content_length = Some(script.text.len() as u64);
    x.reply.etag = Some(script.etag.as_bytes().into());
    (x.reply.fields).push_id(FieldId::CacheControl, b"Cache-Control", CACHE_CONTROL);
    reply::send(x, cx, Some(Chunk::Static(script.text.as_bytes())));
    Content::Sent
}

/// Counts a refused beacon and answers.
fn refuse(x: &mut Exchange, reason: RejectReason) -> Content {
    meters::event(reason.event());
    let text = format_args!("experiment beacon refused: {reason}");
    x.log(Level::Info, text);
    Content::Status(reason.status())
}

/// The head of the request was checked and counted.
struct Admitted;

/// Takes a beacon.
fn receive(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    receiver: &Receiver,
) -> Result<Content, RejectReason> {
    if x.extensions.get::<Admitted>().is_none() {
        admit(x, cx, receiver)?;
        x.extensions.set(Admitted);
    }
    let options = CollectOptions {
        in_file: InFile::Off,
        mode: 0o600,
        log: None,
        most: Some(receiver.max_bytes),
    };
    match request_body::collect(x, cx, &options) {
        Collected::Wait => return Ok(Content::Wait),
        Collected::Status(413) => return Err(RejectReason::TooLarge),
        // The client broke off, or was too slow.
        Collected::Status(status) => return Ok(Content::Status(status)),
        Collected::Done => {}
    }
    let body = x.body_bytes().unwrap_or_default();
    let beacon = beacon::parse(body).map_err(RejectReason::Body)?;
    let recorded = visit::record(x, cx, receiver, &beacon)?;
    meters::event(if recorded {
        Event::BeaconRecorded
    } else {
        Event::BeaconOutside
    });
    Ok(Content::Status(204))
}

/// Checks the head of a request with a beacon.
fn admit(x: &Exchange, cx: &Ctx<'_>, receiver: &Receiver) -> Result<(), RejectReason> {
    if !origin::is_text(x) {
        return Err(RejectReason::ContentType);
    }
    if !origin::is_same(x) {
        return Err(RejectReason::CrossSite);
    }
    if matches!(x.head.body, BodyLength::Length(bytes) if bytes > receiver.max_bytes) {
        return Err(RejectReason::TooLarge);
    }
    let now_ms = cx.clock.mono_ms;
    let limits = &receiver.limits;
    if !limits.admits_address(&x.client.peer, receiver.rate, now_ms) {
        return Err(RejectReason::AddressRate);
    }
    Ok(())
}

/// How long browsers may use the script without a request.
const CACHE_CONTROL: &[u8] = b"max-age=3600";
/// Sizes of `max_size`. A beacon is at most [`BEACON_MAX_BYTES`] long; a page of one host needs 256.
const SIZES: std::ops::RangeInclusive<usize> = 256..=BEACON_MAX_BYTES;
