//! Findings in the tokens of a document: its resources, its title, its base URL.
//!
//! Source: WHATWG HTML sections 2.4, 4.2.3, 4.2.4, 4.8 and 4.12.

use html5gum::emitters::callback::CallbackEvent;

use crate::page::{Kind, TITLE_BYTES_MAX};

/// A finding in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A resource that the page requests.
    Resource(Kind, String),
    /// The URL that references are relative to.
    Base(String),
    Title(String),
    /// The text of a style sheet.
    Css(String),
}

/// State of the tokenizer in the document.
#[derive(Default)]
pub(super) struct Scan {
    /// The start tag that has begun.
    tag: Option<Tag>,
    /// The element that contains the next text.
    text_of: Option<TextOf>,
    /// Depth of elements with inert content: `template`, and `noscript` as in browsers with scripts.
    inert: usize,
    has_base: bool,
    /// A `picture`, `video` or `audio` has its source.
    has_source: bool,
}

/// A start tag.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    /// The first attribute of a name counts.
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone, Copy)]
enum TextOf {
    Title,
    Style,
}

impl Scan {
    /// Handles a token; returns its findings.
    pub(super) fn event(&mut self, event: CallbackEvent<'_>) -> Vec<Found> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let name = name.to_vec();
                self.tag = Some(Tag {
                    name,
                    ..Tag::default()
                });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.attributes.push((name.to_vec(), Vec::new()));
                }
            }
            CallbackEvent::AttributeValue { value } => {
                let last = self.tag.as_mut().and_then(|tag| tag.attributes.last_mut());
                if let Some((_, place)) = last {
                    place.extend_from_slice(value);
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                let tag = self.tag.take();
                return tag.map_or_else(Vec::new, |tag| self.start(&tag));
            }
            CallbackEvent::EndTag { name } => {
                (self.tag, self.text_of) = (None, None);
                match name {
                    name if is_inert(name) => self.inert = self.inert.saturating_sub(1),
                    b"picture" | b"video" | b"audio" => self.has_source = false,
                    _ => {}
                }
            }
            CallbackEvent::String { value } => {
                let text = String::from_utf8_lossy(value);
                return match self.text_of.filter(|_| self.inert == 0) {
                    Some(TextOf::Title) if text.trim().len() <= TITLE_BYTES_MAX => {
                        vec![Found::Title(text.trim().to_owned())]
                    }
                    Some(TextOf::Style) => vec![Found::Css(text.into_owned())],
                    _ => Vec::new(),
                };
            }
            _ => {}
        }
        Vec::new()
    }

    fn start(&mut self, tag: &Tag) -> Vec<Found> {
        self.text_of = None;
        if is_inert(&tag.name) {
            self.inert += 1;
        }
        if self.inert > 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut want = |kind, reference: Option<String>| {
            let reference = reference.filter(|text| !text.trim().is_empty());
            found.extend(reference.map(|text| Found::Resource(kind, text)));
        };
        match &tag.name[..] {
            b"title" => self.text_of = Some(TextOf::Title),
            b"style" => self.text_of = Some(TextOf::Style),
            b"base" if !self.has_base => {
                if let Some(reference) = attribute(tag, b"href") {
                    self.has_base = true;
                    return vec![Found::Base(reference)];
                }
            }
            b"link" => {
                if let Some(kind) = link(tag) {
                    want(kind, image(tag, b"imagesrcset", attribute(tag, b"href")));
                }
            }
            b"script" if is_script(tag) => want(Kind::Script, attribute(tag, b"src")),
            b"picture" => self.has_source = false,
            b"video" | b"audio" => {
                want(Kind::Image, attribute(tag, b"poster"));
                let is_held = is(tag, b"preload", "none");
                let source = attribute(tag, b"src");
                self.has_source = source.is_some() || is_held;
                want(Kind::Media, source.filter(|_| !is_held));
            }
            b"source" if !self.has_source => {
                let image = image(tag, b"srcset", None);
                let media = attribute(tag, b"src");
                self.has_source = image.is_some() || media.is_some();
                want(Kind::Image, image);
                want(Kind::Media, media);
            }
            // In a `picture`, the `img` is for browsers that support no source.
            b"img" if self.has_source => self.has_source = false,
            b"img" => want(Kind::Image, image(tag, b"srcset", attribute(tag, b"src"))),
            b"input" if is(tag, b"type", "image") => want(Kind::Image, attribute(tag, b"src")),
            _ => {}
        }
        found.extend(attribute(tag, b"style").map(Found::Css));
        found
    }
}

fn is_inert(name: &[u8]) -> bool {
    matches!(name, b"noscript" | b"template")
}

fn attribute(tag: &Tag, name: &[u8]) -> Option<String> {
    let mut all = tag.attributes.iter();
    let (_, value) = all.find(|(other, _)| other == name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Whether an attribute has a value, whatever its case.
fn is(tag: &Tag, name: &[u8], value: &str) -> bool {
    attribute(tag, name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
}

/// The kind of resource that a link loads at once, if it loads one.
fn link(tag: &Tag) -> Option<Kind> {
    let relation = attribute(tag, b"rel")?.to_ascii_lowercase();
    let has = |word: &str| relation.split_ascii_whitespace().any(|one| one == word);
    if has("stylesheet") {
        let is_used = !has("alternate") && attribute(tag, b"disabled").is_none();
        return is_used.then_some(Kind::Stylesheet);
    }
    if has("modulepreload") {
        return Some(Kind::Script);
    }
    if has("preload") {
        let destination = attribute(tag, b"as")?.to_ascii_lowercase();
        return Some(match &destination[..] {
            "style" => Kind::Stylesheet,
            "script" | "worker" => Kind::Script,
            "font" => Kind::Font,
            "image" => Kind::Image,
            "audio" | "video" | "track" => Kind::Media,
            _ => Kind::Fetch,
        });
    }
    (has("icon") || has("manifest")).then_some(match has("icon") {
        true => Kind::Image,
        false => Kind::Other,
    })
}

/// Returns whether browsers run a script. They do not run data blocks and `nomodule` scripts.
fn is_script(tag: &Tag) -> bool {
    if attribute(tag, b"nomodule").is_some() {
        return false;
    }
    let kind = attribute(tag, b"type").unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    matches!(&kind[..], "" | "module")
        || kind.ends_with("javascript")
        || kind.ends_with("ecmascript")
}

/// Returns the image of a set for a screen with one pixel per dot. If the candidates have widths, that is the first
/// one, since there is no layout. `alone` is the image outside the set (WHATWG HTML section 4.8.4.3).
fn image(tag: &Tag, set: &[u8], alone: Option<String>) -> Option<String> {
    let set = attribute(tag, set).unwrap_or_default();
    let candidates = candidates(&set);
    let usual = candidates
        .iter()
        .find(|(_, size)| matches!(*size, "" | "1x"));
    let has_widths = candidates.iter().any(|(_, size)| size.ends_with('w'));
    let first = candidates.first().map(|(url, _)| (*url).to_owned());
    match usual {
        Some((url, _)) => Some((*url).to_owned()),
        None if has_widths => first,
        None => alone.or(first),
    }
}

/// URLs of a `srcset`, each with its descriptor.
fn candidates(set: &str) -> Vec<(&str, &str)> {
    let blank = |c: char| c.is_ascii_whitespace() || c == ',';
    let (mut all, mut rest) = (Vec::new(), set.trim_start_matches(blank));
    while let Some(url) = rest.split_ascii_whitespace().next() {
        rest = &rest[url.len()..];
        let is_alone = url.ends_with(',');
        let size = match is_alone {
            true => "",
            false => rest.split(',').next().unwrap_or_default(),
        };
        rest = rest[size.len()..].trim_start_matches(blank);
        all.push((url.trim_end_matches(','), size.trim()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::find::found;
    use super::*;

    #[test]
    fn titles_have_a_limit() {
        for (more, count) in [(0, 1), (1, 0)] {
            let title = "t".repeat(TITLE_BYTES_MAX + more);
            let said = found(format!("<title>{title}</title>").as_bytes());
            assert_eq!(said.len(), count);
        }
    }

    #[test]
    fn images_are_those_of_a_screen_of_one_pixel_a_dot() {
        for (set, expected) in [
            ("", Some("s")),
            (" , ", Some("s")),
            ("a", Some("a")),
            ("a,b 1x", Some("a,b")),
            ("b 2x", Some("s")),
            ("b 2x, a 1x", Some("a")),
            ("b 2x,a", Some("a")),
            ("c, b 2x", Some("c")),
            ("data:,x 2x, a 1x", Some("a")),
            ("b 800w, a 400w", Some("b")),
        ] {
            let html = format!("<img src=s srcset='{set}'>");
            let expected = expected.map(|url| Found::Resource(Kind::Image, url.to_owned()));
            assert_eq!(found(html.as_bytes()), Vec::from_iter(expected), "{set}");
        }
        let only = Found::Resource(Kind::Image, "b".to_owned());
        assert_eq!(
            found(b"<picture><source srcset='b 2x'><img src=s></picture>"),
            [only]
        );
    }
}
