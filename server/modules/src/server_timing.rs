//! `server_timing`: sends the durations of the parts of a request in the field `Server-Timing`; variables with them are for
//! logs. docs/metrics.md defines the durations.
//!
//! In the header: `wait`, until work on the request began; `handshake` of TLS, with the first request of a connection;
//! `head`, from there to the response head.
//! In a trailer, if the response can have one without losing its length: `total`, from the end of the request head to
//! the end of the body. For sampled responses also `sent` and `acked`: when the first byte left, and when the client
//! had it, if known by then. Over HTTP/1.1 a trailer needs `TE: trailers`. Absent: times of other servers, which send
//! them themselves.
//!
//! Source: W3C Server Timing; RFC 9110 sections 6.5 and 10.1.4.

use engines::http::probe::between;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings_set::Conf;
use server_http::timing::put_us;
use server_http::variables;
use server_http::vars::Variable;
use server_http::wants::Wants;
use server_http::{reply, settings};

use crate::headers::write_trailers;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "server_timing",
    directives: &[PLAIN],
    settings: &[<TimingLoc as Conf>::def],
    variables: VARIABLES,
    header_stage: Some(stage),
    wants: Some(wants),
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct TimingLoc: Location / PLAIN {
        /// Sends the durations of the parts of a request in the field `Server-Timing`.
        on "server_timing": bool = false, "off", conf::Contexts::HTTP_SERVER_LOCATION;
    }
}

const VARIABLES: &[Variable] = variables! {
    "first_byte_time": "time from the end of the request head to the first byte given to the kernel, seconds"
        => |x, _, _, o| put_us(o, x.timings.since_head(x.timings.first_byte_us));
    "request_wait_time": "time that the request waited before it was processed, seconds"
        => |x, _, _, o| put_us(o, x.timings.since_head(x.timings.begun_us));
    "handshake_time": "time of the TLS handshake, from the client's first message to its last, seconds"
        => |x, _, _, o| put_us(o, x.tls.as_ref().and_then(|tls| tls.handshake_us));
};

/// Subscribes to all events if the directive is on anywhere or one of the variables is used.
fn wants(b: &mut ConfigBuilder, is_used: bool) -> Wants {
    Wants::all(is_used || b.location_confs_mut::<TimingLoc>().any(|loc| *loc.on))
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    if !*x.route.loc::<TimingLoc>().on {
        return Ok(());
    }
    let timings = &x.timings;
    let mut value = String::new();
    part(&mut value, "wait", timings.since_head(timings.begun_us));
    if let Some(tls) = x.tls.as_ref().filter(|_| x.client.requests == 1) {
        part(&mut value, "handshake", tls.handshake_us);
    }
    part(
        &mut value,
        "head",
        between(timings.begun_us, cx.env.now_us()),
    );
    if !value.is_empty() {
        x.reply.fields.push(FIELD, value.as_bytes());
    }
    let ends = x.reply.content_length.is_none() || x.response.on_end.is_some();
    if ends && !x.header_only() && reply::trailers_allowed(x) && takes_trailers(x) {
        x.response.on_end = Some(set_trailers);
    }
    Ok(())
}

/// Whether the client accepts trailers; HTTP/1.1 clients have to declare it.
fn takes_trailers(x: &Exchange) -> bool {
    if x.head.version.has_trailer_section() {
        return true;
    }
    let mut words = x
        .head
        .named(b"te")
        .flat_map(|field| field.split(|b| *b == b','));
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// Sets the trailers, those of `add_trailer` too.
fn set_trailers(x: &mut Exchange, cx: &mut Ctx<'_>) {
    write_trailers(x, cx);
    let mut value = String::new();
    part(&mut value, "total", x.timings.since_head(cx.env.now_us()));
    part(&mut value, "sent", x.sampled.sent_us);
    part(&mut value, "acked", x.sampled.acked_us);
    if !value.is_empty() {
        x.reply.trailers.push(FIELD, value.as_bytes());
    }
}

/// Appends a duration in milliseconds to the value of the field.
fn part(value: &mut String, name: &str, us: Option<u64>) {
    let Some(us) = us else { return };
    if !value.is_empty() {
        value.push_str(", ");
    }
    value.push_str(&format!("{name};dur={}.{:03}", us / 1000, us % 1000));
}

const FIELD: &[u8] = b"Server-Timing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_milliseconds_to_the_microsecond() {
        let mut value = String::new();
        part(&mut value, "wait", Some(7));
        part(&mut value, "handshake", None);
        part(&mut value, "head", Some(12_345));
        assert_eq!(value, "wait;dur=0.007, head;dur=12.345");
    }
}
