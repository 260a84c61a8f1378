//! Errors in directives of the module.

use conf::{ConfError, Directive};

/// An error about the first word of a directive.
pub(super) fn error(d: &Directive, text: impl Into<String>) -> ConfError {
    ConfError::word(d, d.args.first().unwrap_or(&d.name), text)
}
