//! `metrics`: the counters of the process, for Prometheus.
//!
//! One page in two formats, by `Accept`: Prometheus text format 0.0.4 and OpenMetrics 1.0. Requests and times are
//! counted once a location of the configuration has `metrics`; docs/metrics.md defines them. Absent: pushing, protocol
//! buffers, and labels for `server` blocks or locations, since their number is unbounded. Arms of experiments and upstream
//! servers of groups with a zone, 1,000 of each at most, have labels.
//!
//! Source: Prometheus documentation, "Exposition formats"; OpenMetrics 1.0.

mod caches;
mod experiments;
mod format;
mod page;
mod process;
mod upstreams;

use conf::Contexts;
use engines::http::probe::{Point, ProbeEvent};
use engines::http::{FieldId, Method};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::meters::{self, Time};
use server_http::module::{Content, Handler, Inherit, Module};
use server_http::reply;
use server_http::wants::Wants;

use format::Format;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "metrics",
    directives: &[ROWS],
    handlers: &[Handler::Event(count)],
    on_demand: true,
    wants: Some(|_, _| Wants::all(true)),
    inherits: &[("metrics", Inherit::Blocks)],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Answers with metrics of the process, as Prometheus or OpenMetrics text.
    directive "metrics": Contexts::LOCATION, NOARGS, "", "" => |b, _| {
        b.set_handler(handle);
        Ok(())
    };
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.target.method, Method::Get | Method::Head) {
        return Content::Status(405);
    }
    let accepted: Vec<&[u8]> = x.head.fields_by_id(FieldId::Accept).collect();
    let format = Format::chosen(&accepted.join(&b", "[..]));
    let body = page::render(format, &page::Facts::now(&x.route.http, cx.clock.mono_ms));
    reply::text(x, cx, 200, body.into_bytes(), Some(format.media_type()));
    Content::Sent
}

/// Counts an exchange that has ended.
fn count(event: &ProbeEvent, x: Option<&mut Exchange>) {
    let (Point::End, Some(x)) = (event.point, x) else {
        return;
    };
    meters::request(
        x.head.version,
        x.status(),
        x.input.bytes,
        x.response.bytes_sent,
    );
    if let Some(us) = event.since_head_us() {
        meters::time(Time::Request, us);
    }
    if let Some(us) = x.timings.since_head(x.timings.first_byte_us) {
        meters::time(Time::FirstByte, us);
    }
}
