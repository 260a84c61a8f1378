//! Variables: names to values, as nginx has them.
//!
//! While the configuration is read each name gets a [`VarId`]. At the end each id gets its definition: a function
//! of a module, a prefix (`$arg_x`, `$http_x`) with its suffix, or a slot of the exchange (`set`, named captures,
//! `map` and its kin). Values are computed when used; slots keep theirs.
//!
//! Source: nginx documentation, "Embedded Variables".

mod registry;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::exchange::{Ctx, Exchange};
pub use registry::{Target, VarRegistry};
pub use server_base::config::VarId;
use server_base::errlog::{Level, Printable};

/// Computes a variable: appends to the buffer and returns whether the variable has a value at all. The third
/// argument is the rest of the name after the prefix of a prefix variable, else empty.
pub type Read = fn(&mut Exchange, &mut Ctx<'_>, &[u8], &mut Vec<u8>) -> bool;

/// Assigns a variable that can be `set`.
pub type Write = fn(&mut Exchange, &[u8]);

/// A variable of a module. A name that ends in `_` is a prefix.
pub struct Variable {
    /// Name without the dollar sign.
    pub name: &'static str,
    /// How to read it.
    pub read: Read,
    /// The function that `set` assigns it by, if it may.
    pub write: Option<Write>,
    /// One line of documentation.
    pub doc: &'static str,
}

/// Makes a table of variables of rows `name: documentation => read function`; `, write function` follows if `set`
/// may assign it.
#[macro_export]
macro_rules! variables {
    ($($name:tt: $doc:literal => $read:expr $(, $write:expr)?;)+) => {
        &[$($crate::vars::Variable {
            name: $name,
            read: $read,
            write: $crate::variables!(@write $($write)?),
            doc: $doc,
        }),+]
    };
    (@write) => { None };
    (@write $write:expr) => { Some($write) };
}

/// A value computed from the configuration and kept in a slot (`map`, `geo`, `split_clients`).
pub trait Compute: Send + Sync {
    /// Computes the value; `None` is "not found".
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>>;
    /// Whether to compute it anew at each use.
    fn volatile(&self) -> bool {
        false
    }
}

/// The definition of a variable once the configuration has been read.
#[derive(Clone)]
pub enum Def {
    /// A function.
    Read(Read),
    /// A prefix variable's function and suffix.
    Prefix(Read, Box<[u8]>),
    /// A slot: its index, and whether reading it unset is worth a warning (`set`).
    Slot(usize, bool),
    /// Computed once into a slot.
    Computed(usize, Arc<dyn Compute>),
    /// A slot (`set`), and the variable's own function while the slot is empty, with the suffix of a prefix.
    Default(usize, Read, Box<[u8]>),
}

impl fmt::Debug for Def {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(_) => f.write_str("Read"),
            Self::Prefix(_, suffix) => write!(f, "Prefix({})", String::from_utf8_lossy(suffix)),
            Self::Slot(slot, _) | Self::Computed(slot, _) | Self::Default(slot, ..) => {
                write!(f, "Slot({slot})")
            }
        }
    }
}

/// The variables of a finished configuration.
#[derive(Debug, Default)]
pub struct VarTable {
    defs: Vec<(Box<[u8]>, Def)>,
    /// All variables, for lookup by name while serving; `None` if no directive needs that.
    named: Option<Box<Named>>,
    /// Number of slots of an exchange.
    pub slots: usize,
}

/// The variables by their names.
#[derive(Debug)]
struct Named {
    whole: HashMap<Box<[u8]>, Def>,
    prefixes: Vec<(&'static [u8], Def)>,
}

impl Named {
    /// The definition of a name, and the part of the name after the prefix.
    fn find<'n>(&self, name: &'n [u8]) -> Option<(&Def, &'n [u8])> {
        if let Some(def) = self.whole.get(name) {
            return Some((def, b""));
        }
        let fitting = self.prefixes.iter();
        let fitting = fitting.filter_map(|(prefix, def)| Some((def, name.strip_prefix(*prefix)?)));
        fitting.min_by_key(|(_, suffix)| suffix.len())
    }
}

/// Appends a variable's value; false when it has none ("not found", `-` in a log).
pub fn append(id: VarId, x: &mut Exchange, cx: &mut Ctx<'_>, out: &mut Vec<u8>) -> bool {
    // Most are functions, which need no definition while they run.
    if let (_, Def::Read(read)) = x.route.http.vars.defs[id.0 as usize] {
        return read(x, cx, b"", out);
    }
    let http = Rc::clone(&x.route.http);
    let (name, def) = &http.vars.defs[id.0 as usize];
    append_def(name, def, b"", x, cx, out)
}

/// Appends the value of a variable that is found by its name, in lower case, while serving ([`VarRegistry::by_name`]).
pub fn append_by_name(name: &[u8], x: &mut Exchange, cx: &mut Ctx<'_>, out: &mut Vec<u8>) -> bool {
    let http = Rc::clone(&x.route.http);
    let found = http.vars.named.as_ref().and_then(|named| named.find(name));
    found.is_some_and(|(def, suffix)| append_def(name, def, suffix, x, cx, out))
}

#[inline]
fn append_def(
    name: &[u8],
    def: &Def,
    suffix: &[u8],
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    out: &mut Vec<u8>,
) -> bool {
    match def {
        Def::Read(read) => read(x, cx, suffix, out),
        Def::Prefix(read, suffix) => read(x, cx, suffix, out),
        // nginx warns of a variable that `set` did not reach, and of no other.
        Def::Slot(slot, warn) => match x.vars.slot(*slot) {
            Some(value) => {
                out.extend_from_slice(value);
                true
            }
            None if *warn => {
                x.warn_uninitialized(cx, name);
                true
            }
            None => false,
        },
        Def::Default(slot, read, suffix) => match x.vars.slot(*slot) {
            Some(value) => {
                out.extend_from_slice(value);
                true
            }
            None => read(x, cx, suffix, out),
        },
        Def::Computed(slot, compute) => {
            // A value is kept for the exchange, `map ... volatile` excepted, and evaluating it may need others: a circle ends by depth.
            if compute.volatile() || !x.vars.slot_known(*slot) {
                if x.vars.depth >= MAX_DEPTH {
                    let name = Printable(name);
                    x.log(
                        Level::Error,
                        format_args!("cycle while evaluating variable \"{name}\""),
                    );
                    return false;
                }
                x.vars.depth += 1;
                let value = compute.compute(x, cx);
                x.vars.depth -= 1;
                x.vars.set_slot(*slot, value);
            }
            match x.vars.slot(*slot) {
                Some(value) => {
                    out.extend_from_slice(value);
                    true
                }
                None => false,
            }
        }
    }
}

/// Maximum depth of computed variables that need one another, as in nginx.
const MAX_DEPTH: u8 = 100;

#[cfg(test)]
#[path = "vars_tests.rs"]
mod tests;
