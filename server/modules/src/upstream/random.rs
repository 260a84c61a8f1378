//! `random`: a random server, or the better of two.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `random`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_upstream::balance::least_time::Time;
use server_upstream::balance::random::Random;

use super::method::set_method;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Requests are passed to a random server by weight; with two, to the better of two random servers by a method.
    directive "random": Contexts::UPSTREAM, TAKE012, "", "[two [least_conn | least_time=header|last_byte]]"
        => random;
}

fn random(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let method = match d.args.as_slice() {
        [] => Random::One,
        [two, rest @ ..] if two.text == b"two" => match rest.first() {
            None => Random::TwoLeastConn,
            Some(word) => match word.text.as_slice() {
                b"least_conn" => Random::TwoLeastConn,
                b"least_time=header" => Random::TwoLeastTime(Time::Header),
                b"least_time=last_byte" => Random::TwoLeastTime(Time::LastByte),
                _ => return Err(ConfError::parameter(d, word)),
            },
        },
        [word, ..] => return Err(ConfError::parameter(d, word)),
    };
    set_method(b, d, method, None);
    Ok(())
}
