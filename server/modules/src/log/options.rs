//! Parameters of `access_log` after the format.

use conf::{ConfError, Directive, Word};
use server_base::logs::Buffering;
use server_http::assemble::ConfigBuilder;
use server_http::value::Value;

#[derive(Default)]
pub(super) struct Options {
    pub(super) buffer: Option<usize>,
    flush_ms: Option<u64>,
    gzip: Option<u32>,
    pub(super) condition: Option<Value>,
}

impl Options {
    pub(super) fn parameter(
        &mut self,
        b: &mut ConfigBuilder,
        d: &Directive,
        word: &Word,
    ) -> Result<(), ConfError> {
        let bad = |what: &str, v: &str| ConfError::word(d, word, format!("invalid {what} \"{v}\""));
        let text = word.as_str();
        match text.split_once('=') {
            Some(("buffer", v)) => {
                self.buffer = Some(
                    conf::parse_size(v.as_bytes())
                        .filter(|n| *n > 0)
                        .ok_or_else(|| bad("buffer size", v))?,
                );
            }
            Some(("flush", v)) => {
                let ms = conf::parse_time_ms(v.as_bytes()).filter(|n| *n > 0);
                self.flush_ms = Some(ms.ok_or_else(|| bad("flush time", v))?);
            }
            Some(("gzip", v)) => {
                let level = conf::parse_digits(v).filter(|n| (1..=9).contains(n));
                self.gzip = Some(level.ok_or_else(|| bad("compression level", v))?);
            }
            None if text == "gzip" => self.gzip = Some(1),
            Some(("if", _)) => {
                self.condition = Some(Value::compile_bytes(b, d, word, &word.text[3..])?)
            }
            _ => return Err(ConfError::parameter(d, word)),
        }
        if self.gzip.is_some() && self.buffer.is_none() {
            self.buffer = Some(GZIP_BUFFER_BYTES);
        }
        Ok(())
    }

    pub(super) fn buffering(&self, d: &Directive) -> Result<Option<Buffering>, ConfError> {
        match self.buffer {
            Some(size) => Ok(Some(Buffering {
                size,
                flush_ms: self.flush_ms,
                gzip: self.gzip,
            })),
            None if self.flush_ms.is_some() => Err(ConfError::at(
                d,
                format!("no buffer is defined for access_log \"{}\"", d.arg_str(0)),
            )),
            None => Ok(None),
        }
    }
}

/// Default buffer of a compressed log, bytes.
const GZIP_BUFFER_BYTES: usize = 64 << 10;
