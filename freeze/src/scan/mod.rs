//! References of a file: found by a small reader for each language, resolved against the tree at once.
//!
//! A *reference* is what its language says is one. It is changed when what it refers to is renamed. A *mention* is a
//! word, in a string of a script or in an attribute that only scripts read, that may mean a file: it is never changed,
//! and what it may mean keeps its name.

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
