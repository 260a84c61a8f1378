//! Variables: names to values, as nginx has them.
//!
//! While the configuration is read each name gets a [`VarId`]; when it has been read each id gets its definition:
//! a function of a module, a prefix (`$arg_x`, `$http_x`) with its suffix, or a slot of the exchange (`set`, named
//! captures, `map` and its kin). Values are computed when used; slots keep theirs.
//!
//! Source: nginx documentation, "Embedded Variables".

mod used;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Directive, Word};

use crate::exchange::{Ctx, Exchange};
pub use server_base::config::VarId;
use server_base::errlog::{Level, Printable};

/// Computes a variable: appends to the buffer and returns whether the variable has a value at all.
/// The third argument is what follows the prefix for a prefix variable, else empty.
pub type Read = fn(&mut Exchange, &mut Ctx<'_>, &[u8], &mut Vec<u8>) -> bool;

/// Assigns a variable that can be `set`.
pub type Write = fn(&mut Exchange, &[u8]);

/// A variable of a module. A name that ends in `_` is a prefix.
pub struct Variable {
    /// Name without the dollar sign.
    pub name: &'static str,
    /// How to read it.
    pub read: Read,
    /// How `set` assigns it, where it may.
    pub write: Option<Write>,
    /// One line of documentation.
    pub doc: &'static str,
}

/// Makes a table of variables of rows `name: documentation => how to read it`, with `, how set assigns it` where it may.
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
    /// A slot (`set`), and what the variable is as long as that is empty, with the suffix of a prefix.
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
    /// All variables, for lookup by name while serving; `None` where no directive needs that.
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

/// The target of `set` or of a named capture.
#[derive(Clone, Copy)]
pub enum Target {
    /// A slot.
    Slot(usize),
    /// A built-in variable.
    Builtin(Write),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot(slot) => write!(f, "Slot({slot})"),
            Self::Builtin(_) => f.write_str("Builtin"),
        }
    }
}

/// The variables while the configuration is read.
#[derive(Default)]
pub struct VarRegistry {
    ids: HashMap<Vec<u8>, VarId>,
    names: Vec<Vec<u8>>,
    used: Vec<Option<ConfError>>,
    defs: HashMap<Vec<u8>, Def>,
    builtin: HashMap<&'static [u8], &'static Variable>,
    defaults: HashMap<&'static [u8], &'static Variable>,
    prefixes: Vec<&'static Variable>,
    slots: usize,
    /// Variables will be found by name while serving.
    pub by_name: bool,
}

impl VarRegistry {
    /// Adds a module's variables.
    pub fn add(&mut self, variables: &'static [Variable]) {
        for v in variables {
            if v.name.ends_with('_') {
                self.prefixes.push(v);
            } else {
                self.builtin.insert(v.name.as_bytes(), v);
            }
        }
    }

    /// Adds variables of a module that the configuration may define anew.
    pub fn add_defaults(&mut self, variables: &'static [Variable]) {
        for v in variables {
            self.defaults.insert(v.name.as_bytes(), v);
        }
    }

    /// The id of a variable that a module uses by itself; it is one of a module.
    pub fn built_in(&mut self, name: &'static str) -> VarId {
        if let Some(id) = self.ids.get(name.as_bytes()) {
            return *id;
        }
        self.new_id(name.as_bytes().to_vec(), None)
    }

    /// The id of a variable used in `word` of a directive.
    pub fn reference(&mut self, name: &[u8], d: &Directive, word: &Word) -> VarId {
        let name = name.to_ascii_lowercase();
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let text = format!("unknown \"{}\" variable", String::from_utf8_lossy(&name));
        self.new_id(name, Some(ConfError::word(d, word, text)))
    }

    fn new_id(&mut self, name: Vec<u8>, unknown: Option<ConfError>) -> VarId {
        let id = VarId(self.names.len() as u32);
        self.used.push(unknown);
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    /// The slot of a variable that a named capture sets.
    pub fn settable(&mut self, name: &[u8]) -> usize {
        let name = name.to_ascii_lowercase();
        match self.defs.get(&name) {
            Some(Def::Slot(slot, _) | Def::Computed(slot, _)) => *slot,
            _ => {
                let slot = self.new_slot();
                self.defs.insert(name, Def::Slot(slot, false));
                slot
            }
        }
    }

    /// The target that `set $name` writes to.
    ///
    /// # Errors
    /// `the duplicate "uri" variable` for a built-in one that cannot be changed.
    pub fn target(&mut self, name: &[u8]) -> Result<Target, String> {
        let target = self.quiet_target(name)?;
        if let Some(Def::Slot(_, warn)) = self.defs.get_mut(&name.to_ascii_lowercase()) {
            *warn = true;
        }
        Ok(target)
    }

    /// The target of a directive other than `set`: where it writes nothing, the variable has no value, and no warning
    /// is logged.
    ///
    /// # Errors
    /// See [`VarRegistry::target`].
    pub fn quiet_target(&mut self, name: &[u8]) -> Result<Target, String> {
        let lower = name.to_ascii_lowercase();
        match self.lookup_builtin(&lower) {
            Some((
                Variable {
                    write: Some(write), ..
                },
                _,
            )) => return Ok(Target::Builtin(*write)),
            Some((v, _))
                if !v.name.ends_with('_') && !self.defaults.contains_key(v.name.as_bytes()) =>
            {
                return Err(format!(
                    "the duplicate \"{}\" variable",
                    String::from_utf8_lossy(name)
                ));
            }
            _ => {}
        }
        Ok(Target::Slot(self.settable(&lower)))
    }

    /// Defines a computed variable.
    ///
    /// # Errors
    /// `the duplicate "x" variable` for a built-in one.
    pub fn define(&mut self, name: &[u8], compute: Arc<dyn Compute>) -> Result<usize, String> {
        let lower = name.to_ascii_lowercase();
        if self.builtin.contains_key(lower.as_slice()) {
            return Err(format!(
                "the duplicate \"{}\" variable",
                String::from_utf8_lossy(name)
            ));
        }
        let slot = self.settable(&lower);
        self.defs.insert(lower, Def::Computed(slot, compute));
        Ok(slot)
    }

    /// A fresh slot of the exchange.
    pub fn new_slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    /// Whether a variable of this name has been used.
    pub fn is_used(&self, name: &str) -> bool {
        self.ids.contains_key(name.as_bytes())
    }

    /// Resolves every used name to its definition.
    ///
    /// # Errors
    /// `unknown "x" variable` at its first use.
    pub fn finish(&mut self) -> Result<VarTable, ConfError> {
        let mut defs = Vec::with_capacity(self.names.len());
        for (i, name) in self.names.iter().enumerate() {
            let def = match self.defs.get(name) {
                Some(def) => self.with_default(name, def),
                None => match self.lookup_builtin(name) {
                    Some((v, suffix)) if v.name.ends_with('_') => {
                        Def::Prefix(v.read, suffix.into())
                    }
                    Some((v, _)) => Def::Read(v.read),
                    None => match self.used[i].take() {
                        Some(error) => return Err(error),
                        None => continue,
                    },
                },
            };
            defs.push((name.as_slice().into(), def));
        }
        Ok(VarTable {
            defs,
            named: self.by_name.then(|| Box::new(self.named())),
            slots: self.slots,
        })
    }

    /// A definition of the configuration, with that of a module behind it where there is one.
    fn with_default(&self, name: &[u8], def: &Def) -> Def {
        match (def, self.lookup_builtin(name)) {
            // As in nginx a request header field is read where `set` has not set its variable.
            (Def::Slot(slot, set), Some((v, suffix))) if suffix.is_empty() || *set => {
                Def::Default(*slot, v.read, suffix.into())
            }
            _ => def.clone(),
        }
    }

    fn named(&self) -> Named {
        let builtin = self.builtin.iter().chain(&self.defaults);
        let builtin = builtin.map(|(name, v)| ((*name).into(), Def::Read(v.read)));
        let own = self.defs.iter();
        let own = own.map(|(name, def)| (name.as_slice().into(), self.with_default(name, def)));
        let prefix = |v: &&'static Variable| (v.name.as_bytes(), Def::Read(v.read));
        Named {
            whole: builtin.chain(own).collect(),
            prefixes: self.prefixes.iter().map(prefix).collect(),
        }
    }

    fn lookup_builtin<'n>(&self, name: &'n [u8]) -> Option<(&'static Variable, &'n [u8])> {
        let whole = self.builtin.get(name).or_else(|| self.defaults.get(name));
        if let Some(v) = whole {
            return Some((v, b""));
        }
        self.prefixes
            .iter()
            .filter_map(|v| Some((*v, name.strip_prefix(v.name.as_bytes())?)))
            .max_by_key(|(v, _)| v.name.len())
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
