//! The variables while the configuration is read: names become ids, and ids get definitions.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use server_base::config::VarId;

use super::{Compute, Def, Named, VarTable, Variable, Write};

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

    /// The target of a directive other than `set`. Without a written value the variable has none, and no warning is
    /// logged.
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

    /// Returns used variables with a prefix, except those defined by the configuration: the rest of each name, in
    /// lower case, and the error for an unknown variable. A variable that a module uses has no error.
    pub fn used_with_prefix(
        &self,
        prefix: &str,
    ) -> impl Iterator<Item = (&[u8], Option<&ConfError>)> {
        let names = self.names.iter().zip(&self.used);
        let is_own = |name: &[u8]| self.defs.contains_key(name);
        names.filter_map(move |(name, used)| {
            let rest = name.strip_prefix(prefix.as_bytes())?;
            (!is_own(name)).then_some((rest, used.as_ref()))
        })
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
            named: self.by_name.then(|| Box::new(self.names())),
            slots: self.slots,
        })
    }

    /// A definition of the configuration, with that of a module behind it if there is one.
    fn with_default(&self, name: &[u8], def: &Def) -> Def {
        match (def, self.lookup_builtin(name)) {
            // As in nginx, a request header field is read if `set` has not set its variable.
            (Def::Slot(slot, set), Some((v, suffix))) if suffix.is_empty() || *set => {
                Def::Default(*slot, v.read, suffix.into())
            }
            _ => def.clone(),
        }
    }

    fn names(&self) -> Named {
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
