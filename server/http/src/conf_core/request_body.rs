//! Settings of request bodies with a shape of their own.
//!
//! Source: nginx documentation, `client_body_in_file_only`; `client_body_min_rate` is firstbyte's.

use conf::{Arity, ConfError, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::keyword;

keyword! {
    /// `client_body_in_file_only`.
    pub enum InFile {
        /// Only a body too large for memory is in a file.
        Off = "off",
        /// All of it, in a file that is removed after the request.
        Clean = "clean",
        /// All of it, in a file that stays.
        On = "on",
    }
}

/// `client_body_min_rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyRate {
    /// Bytes a second; 0 for none.
    pub bytes_a_second: u64,
    /// Time that a client may fall behind, milliseconds.
    pub grace_ms: u64,
}

impl FromArgs for BodyRate {
    const ARITY: Arity = Arity::TAKE12;
    const SYNTAX: &'static str = "size [grace=time]";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let bytes_a_second = conf::parse_size(d.arg(0))
            .ok_or_else(|| ConfError::directive(d, "invalid value"))?
            as u64;
        let mut grace_ms = GRACE_MS;
        if d.args.len() == 2 {
            let time = d.arg(1).strip_prefix(b"grace=");
            grace_ms = time
                .and_then(conf::parse_time_ms)
                .filter(|ms| *ms > 0)
                .ok_or_else(|| {
                    let text = format!("invalid parameter \"{}\"", d.arg_str(1));
                    ConfError::word(d, d.word(1), text)
                })?;
        }
        Ok(Self {
            bytes_a_second,
            grace_ms,
        })
    }
}

/// The default grace, milliseconds.
const GRACE_MS: u64 = 10_000;
