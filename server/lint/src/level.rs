//! Levels of rules.

use std::fmt;

/// Severity of a warning, in the words of the directive `error_log`; the later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A better way exists.
    Notice,
    /// A trap in many configurations, on purpose in some.
    Warn,
    /// The directive does not do its work, or opens a hole.
    Error,
}

impl Level {
    /// All levels, the mildest first.
    pub const ALL: [Self; 3] = [Self::Notice, Self::Warn, Self::Error];

    /// The word of `error_log`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered() {
        assert!(Level::ALL.is_sorted());
    }
}
