//! Evaluation of complex values for an exchange.

use server_base::errlog::{Level, Printable};

use crate::exchange::{Ctx, Exchange};
use crate::value::{Part, Value};

impl Value {
    /// Appends the value for this exchange.
    pub fn eval(&self, x: &mut Exchange, cx: &mut Ctx<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Var(id) => {
                    super::append(*id, x, cx, out);
                }
                Part::Capture(n) => out.extend_from_slice(x.vars.captures.get(usize::from(*n))),
            }
        }
    }

    /// The value for this exchange in a new buffer.
    pub fn to_vec(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.eval(x, cx, &mut out);
        out
    }

    /// Whether a condition made of this value holds: not empty and not `0`.
    pub fn is_true(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
        let value = self.to_vec(x, cx);
        !(value.is_empty() || value == b"0")
    }
}

impl Exchange {
    /// Returns the size of a directive with variables, bytes; 0 without the directive. As in nginx an invalid size is logged
    /// and counts as 0.
    pub fn size(&mut self, cx: &mut Ctx<'_>, value: Option<&Value>) -> u64 {
        let Some(value) = value else { return 0 };
        let text = value.to_vec(self, cx);
        let size = conf::parse_size(&text);
        if size.is_none() {
            let text = Printable(&text);
            self.log(Level::Error, format_args!("invalid size \"{text}\""));
        }
        size.map_or(0, |bytes| bytes as u64)
    }
}
