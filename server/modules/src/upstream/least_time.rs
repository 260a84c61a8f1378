//! `least_time`: the server with the shortest average response time.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `least_time`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_upstream::balance::least_time::{LeastTime, Time};

use super::method::set_method;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Requests are passed to the server with the shortest average response time and the fewest active connections.
    directive "least_time": Contexts::UPSTREAM, TAKE12, "", "header | last_byte [inflight]" => least_time;
}

fn least_time(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let in_flight = match d.args.get(1) {
        None => false,
        Some(word) if word.text == b"inflight" => true,
        Some(word) => return Err(ConfError::parameter(d, word)),
    };
    let time = match d.arg(0) {
        b"header" => Time::Header,
        b"last_byte" => Time::LastByte,
        _ => return Err(ConfError::invalid(d, d.word(0))),
    };
    set_method(b, d, LeastTime { time, in_flight }, None);
    Ok(())
}
