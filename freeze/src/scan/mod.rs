//! References of a file: found by a small reader for each language, resolved against the tree at once.
//!
//! A *reference* is defined by its language, and is changed if its target is renamed. A *mention* is a word that may
//! name a file, in a string of a script or in an attribute that only scripts read. It is never changed, and the files
//! that it may name keep their names.

mod css;
mod html;
mod js;
mod json;
mod sink;

use super::kinds::Language;
use super::text::Text;
use super::tree::Tree;
use super::url::Site;
pub(super) use sink::Found;
use sink::Sink;

/// Reads a file of the tree.
pub(super) fn scan(tree: &Tree, site: &Site, file: usize, bytes: &[u8]) -> Found {
    let own = &tree.files[file];
    let mut sink = Sink::new(tree, site, own.dir());
    let text = Text::plain(bytes, 0);
    match own.kind.language {
        Language::Html => html::scan(&text, &mut sink, false),
        Language::Svg => html::scan(&text, &mut sink, true),
        Language::Css => css::scan(&text, &mut sink),
        Language::Js => js::scan(&text, &mut sink),
        Language::Data => json::scan(&text, &mut sink, json::Form::Data),
        Language::AppManifest => json::scan(&text, &mut sink, json::Form::AppManifest),
        Language::SourceMap => json::scan(&text, &mut sink, json::Form::SourceMap),
        Language::Xml => sink.words(&text),
        Language::Opaque => {}
    }
    sink.finish(bytes)
}

#[cfg(test)]
mod tests;
