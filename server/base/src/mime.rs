//! Lists of media types for which a module processes responses: `charset_types`, `gzip_types` and so on.
//!
//! Source: nginx documentation, directive `gzip_types`.

use std::collections::HashSet;
use std::sync::Arc;

use conf::{Arity, ConfError, Directive};

use crate::config::ConfigContext;
use crate::from_args::FromArgs;

/// A set of media types, or all of them.
#[derive(Clone, Debug)]
pub struct MimeTypes(Arc<Types>);

#[derive(Clone, Debug, Default)]
struct Types {
    all: bool,
    set: HashSet<Vec<u8>>,
}

impl MimeTypes {
    /// A set of these types.
    pub fn of(types: &[&str]) -> Self {
        let set = types.iter().map(|t| t.as_bytes().to_vec()).collect();
        Self(Arc::new(Types { all: false, set }))
    }

    /// Returns whether the list has this type, which is compared with all its parameters and without case. A response without
    /// a type is in a list of all types only.
    pub fn matches(&self, media_type: &[u8]) -> bool {
        self.0.all || self.0.set.contains(&media_type.to_ascii_lowercase())
    }
}

impl FromArgs for MimeTypes {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "mime-type ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::of(&[ALWAYS]).parse_again(cx, d)
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let mut types = Arc::unwrap_or_clone(self.0);
        for word in &d.args {
            if word.text == b"*" {
                types.all = true;
                break;
            }
            if !types.set.insert(word.text.to_ascii_lowercase()) {
                let text = word.as_str().to_ascii_lowercase();
                let text = format!("duplicate MIME type \"{text}\"");
                cx.warn(ConfError::word(d, word, text));
            }
        }
        Ok(Self(Arc::new(types)))
    }
}

/// The type that every directive includes.
pub const ALWAYS: &str = "text/html";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_match_whole_and_without_case() {
        let types = MimeTypes::of(&["text/html", "text/plain; a=b"]);
        assert!(types.matches(b"Text/HTML"));
        assert!(types.matches(b"text/plain; A=b"));
        for other in [
            "text/htmlx",
            "text/html;",
            "text/html; a=b",
            "text/html ",
            "text/plain",
        ] {
            assert!(!types.matches(other.as_bytes()), "{other}");
        }
        assert!(!types.matches(b""));
    }
}
