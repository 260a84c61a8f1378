//! Names of variables that a configuration uses.

use conf::ConfError;

use super::VarRegistry;

impl VarRegistry {
    /// Returns used variables with a prefix, without those that the configuration defines: the rest of each name, in lower
    /// case, and the error for an unknown variable. A variable that a module uses has no error.
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
}
