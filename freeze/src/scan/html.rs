//! References in HTML and SVG: in attributes, in `style` and `script` elements, after `base`.
//!
//! The reader finds tags as browsers do, comments and the text of elements without markup passed over; it builds no
//! tree, because no reference depends on one. Attributes that only scripts read mention files. Absent: conditional
//! comments; documents that are not in a superset of ASCII.
//!
//! Source: HTML, "Tokenization", "The base element", "Srcset attributes"; SVG 2, "Linking".

use super::sink::{Report, Sink};
use super::{css, js, json};
use crate::text::Text;

/// Reads a document.
pub(super) fn scan(text: &Text<'_>, sink: &mut Sink<'_>, is_xml: bool) {
    Html {
        text,
        at: 0,
        is_xml,
    }
    .run(sink);
}

struct Html<'a> {
    text: &'a Text<'a>,
    at: usize,
    is_xml: bool,
}

/// An attribute with the place of its value.
struct Attribute {
    name: Vec<u8>,
    from: usize,
    to: usize,
}

impl Html<'_> {
    fn run(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        while let Some(length) = bytes[self.at..].iter().position(|b| *b == b'<') {
            self.at += length;
            let rest = &bytes[self.at..];
            match rest.get(1) {
                Some(b'!') if rest.starts_with(b"<!--") => self.comment(),
                Some(b'!') if rest.starts_with(b"<![CDATA[") && self.is_xml => {
                    self.after(9, b"]]>");
                }
                Some(b'!' | b'/') => self.after(2, b">"),
                Some(b'?') if !self.is_xml => self.after(2, b">"),
                Some(b) if b.is_ascii_alphabetic() || *b == b'?' => self.tag(sink),
                _ => self.at += 1,
            }
        }
    }

    /// Continues after the next `end`, which is at least `skip` bytes away.
    fn after(&mut self, skip: usize, end: &[u8]) {
        let bytes = self.text.bytes();
        let from = (self.at + skip).min(bytes.len());
        let found = bytes[from..].windows(end.len()).position(|w| w == end);
        self.at = found.map_or(bytes.len(), |found| from + found + end.len());
    }

    fn comment(&mut self) {
        let rest = &self.text.bytes()[self.at..];
        match rest {
            [_, _, _, _, b'>', ..] => self.at += 5,
            [_, _, _, _, b'-', b'>', ..] => self.at += 6,
            _ => self.after(4, b"-->"),
        }
    }

    fn tag(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        let from = self.at + 1;
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'>');
        let length = bytes[from..].iter().take_while(|b| !ends(b)).count();
        let name = bytes[from..from + length].to_ascii_lowercase();
        self.at = from + length;
        let attributes = self.attributes();
        Element {
            text: self.text,
            name: &name,
            attributes: &attributes,
        }
        .take(sink);
        match name.as_slice() {
            b"script" | b"style" => {
                let (from, to) = self.raw(&name);
                if from < to {
                    content(&name, &attributes, self.text, (from, to), sink);
                }
            }
            b"title" | b"textarea" | b"xmp" | b"iframe" | b"noembed" if !self.is_xml => {
                self.raw(&name);
            }
            b"plaintext" if !self.is_xml => self.at = bytes.len(),
            _ => {}
        }
    }

    /// Reads attributes up to the end of the tag.
    fn attributes(&mut self) -> Vec<Attribute> {
        let bytes = self.text.bytes();
        let mut found = Vec::new();
        let blank = |b: u8| b.is_ascii_whitespace();
        loop {
            while self.at < bytes.len()
                && (blank(bytes[self.at]) || matches!(bytes[self.at], b'/' | b'?'))
            {
                self.at += 1;
            }
            let from = self.at;
            match bytes.get(from) {
                None => return found,
                Some(b'>') => {
                    self.at += 1;
                    return found;
                }
                Some(_) => self.at += 1,
            }
            while self.at < bytes.len()
                && !blank(bytes[self.at])
                && !matches!(bytes[self.at], b'/' | b'>' | b'=')
            {
                self.at += 1;
            }
            let name = bytes[from..self.at].to_ascii_lowercase();
            while self.at < bytes.len() && blank(bytes[self.at]) {
                self.at += 1;
            }
            if bytes.get(self.at) != Some(&b'=') {
                continue;
            }
            self.at += 1;
            while self.at < bytes.len() && blank(bytes[self.at]) {
                self.at += 1;
            }
            let (from, to) = self.value();
            found.push(Attribute { name, from, to });
        }
    }

    fn value(&mut self) -> (usize, usize) {
        let bytes = self.text.bytes();
        let length = |from: usize, ends: &dyn Fn(&u8) -> bool| {
            bytes[from..].iter().take_while(|b| !ends(b)).count()
        };
        match bytes.get(self.at) {
            Some(quote @ (b'"' | b'\'')) => {
                let from = self.at + 1;
                let to = from + length(from, &|b| b == quote);
                self.at = (to + 1).min(bytes.len());
                (from, to)
            }
            _ => {
                let from = self.at;
                self.at += length(from, &|b| b.is_ascii_whitespace() || *b == b'>');
                (from, self.at)
            }
        }
    }

    /// Reads the text of an element without markup, and stops at its end tag.
    fn raw(&mut self, name: &[u8]) -> (usize, usize) {
        let bytes = self.text.bytes();
        let from = self.at;
        let is_end = |at: usize| {
            let tag = &bytes[at..];
            tag.starts_with(b"</")
                && tag
                    .get(2..2 + name.len())
                    .is_some_and(|n| n.eq_ignore_ascii_case(name))
                && tag
                    .get(2 + name.len())
                    .is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'))
        };
        let mut at = from;
        while at < bytes.len() && !(bytes[at] == b'<' && is_end(at)) {
            at += 1;
        }
        self.at = at;
        (from, at)
    }
}

/// Scans the contents of a `script` or `style` element.
fn content(
    name: &[u8],
    attributes: &[Attribute],
    text: &Text<'_>,
    (from, to): (usize, usize),
    sink: &mut Sink<'_>,
) {
    let part = text.part(from, to);
    if name == b"style" {
        return css::scan(&part, sink);
    }
    let kind = attributes.iter().find(|a| a.name == b"type");
    let kind = kind.map_or(&b""[..], |a| &text.bytes()[a.from..a.to]);
    let kind = kind.trim_ascii().to_ascii_lowercase();
    match kind.as_slice() {
        b"importmap" | b"speculationrules" => json::scan(&part, sink, json::Form::ImportMap),
        b"" | b"module" => js::scan(&part, sink),
        kind if kind.ends_with(b"javascript") || kind.ends_with(b"ecmascript") => {
            js::scan(&part, sink)
        }
        kind if kind.ends_with(b"json") => json::scan(&part, sink, json::Form::Data),
        _ => sink.words(&part),
    }
}

/// A tag with its attributes.
struct Element<'a> {
    text: &'a Text<'a>,
    name: &'a [u8],
    attributes: &'a [Attribute],
}

impl Element<'_> {
    fn value(&self, name: &[u8]) -> Option<Text<'_>> {
        let found = self.attributes.iter().find(|a| a.name == name)?;
        Some(self.text.html(found.from, found.to))
    }

    /// Whether a value contains this word.
    fn has_word(&self, name: &[u8], word: &[u8]) -> bool {
        self.value(name).is_some_and(|value| {
            let mut words = value.bytes().split(u8::is_ascii_whitespace);
            words.any(|w| w.eq_ignore_ascii_case(word))
        })
    }

    fn take(&self, sink: &mut Sink<'_>) {
        for attribute in self.attributes {
            let value = self.text.html(attribute.from, attribute.to);
            self.attribute(attribute, &value, sink);
        }
    }

    fn attribute(&self, attribute: &Attribute, value: &Text<'_>, sink: &mut Sink<'_>) {
        let name = attribute.name.as_slice();
        match name {
            b"href" if self.name == b"base" => sink.base(value),
            b"href" | b"xlink:href" | b"src" => self.link(value, sink),
            b"srcset" | b"imagesrcset" => srcset(value, sink),
            b"poster" | b"background" | b"longdesc" | b"manifest" | b"lowsrc" | b"dynsrc" => {
                sink.reference(value, Report::Broken, None);
            }
            b"data" if self.name == b"object" => {
                sink.reference(value, Report::Broken, None);
            }
            b"action" | b"formaction" | b"cite" | b"ping" | b"profile" => {
                sink.reference(value, Report::Nothing, None);
            }
            b"style" => css::scan(value, sink),
            b"content" if self.name == b"meta" => self.meta(value, sink),
            _ if name.starts_with(b"on") => js::scan(value, sink),
            _ if name.starts_with(b"aria-")
                || name.starts_with(b"xmlns")
                || SILENT.contains(&name) => {}
            _ if PRESENTATION.contains(&name) => css::scan(value, sink),
            _ => sink.words(value),
        }
    }

    /// `href` and `src`.
    fn link(&self, value: &Text<'_>, sink: &mut Sink<'_>) {
        let head = value.bytes().trim_ascii_start();
        if head
            .get(..11)
            .is_some_and(|s| s.eq_ignore_ascii_case(b"javascript:"))
        {
            return sink.words(value);
        }
        let integrity = self.attributes.iter().find(|a| a.name == b"integrity");
        let integrity = integrity
            .filter(|_| matches!(self.name, b"link" | b"script"))
            .map(|a| self.text.place(a.from)..self.text.place(a.to));
        let found = sink.reference(value, Report::Broken, integrity);
        // A browser identifies an installed application by the URL of its manifest.
        if self.name == b"link"
            && self.has_word(b"rel", b"manifest")
            && let Some(file) = found
        {
            sink.pin(value.place(0), file);
        }
    }

    /// `content` of `meta`.
    fn meta(&self, value: &Text<'_>, sink: &mut Sink<'_>) {
        let names = [&b"property"[..], b"name", b"itemprop"];
        let names = names.iter().filter_map(|name| self.value(name));
        let is_image = names
            .map(|name| name.bytes().to_ascii_lowercase())
            .any(|name| META.contains(&name.as_slice()));
        if is_image {
            sink.reference(value, Report::Broken, None);
        } else if self.has_word(b"http-equiv", b"refresh") {
            let bytes = value.bytes();
            let url = bytes
                .windows(4)
                .position(|w| w.eq_ignore_ascii_case(b"url="));
            if let Some(place) = url {
                let quoted = |b: &&u8| matches!(b, b'"' | b'\'' | b' ');
                let from = place + 4 + bytes[place + 4..].iter().take_while(quoted).count();
                let length = bytes[from..].iter().take_while(|b| !quoted(b)).count();
                sink.reference(&value.part(from, from + length), Report::Broken, None);
            }
        } else {
            sink.word(value);
        }
    }
}

/// The candidates of `srcset`.
fn srcset(value: &Text<'_>, sink: &mut Sink<'_>) {
    let bytes = value.bytes();
    let mut at = 0;
    loop {
        let skipped = |b: &&u8| b.is_ascii_whitespace() || **b == b',';
        at += bytes[at..].iter().take_while(skipped).count();
        if at >= bytes.len() {
            return;
        }
        let length = bytes[at..]
            .iter()
            .take_while(|b| !b.is_ascii_whitespace())
            .count();
        let url = &bytes[at..at + length];
        let commas = url.iter().rev().take_while(|b| **b == b',').count();
        sink.reference(&value.part(at, at + length - commas), Report::Broken, None);
        at += length;
        if commas == 0 {
            let mut depth = 0_usize;
            let descriptors = bytes[at..].iter().take_while(|b| {
                match b {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                **b != b',' || depth > 0
            });
            at += descriptors.count();
        }
    }
}

/// Names of `meta` elements with a reference as content.
const META: &[&[u8]] = &[
    b"og:image",
    b"og:image:url",
    b"og:image:secure_url",
    b"og:video",
    b"og:video:url",
    b"og:video:secure_url",
    b"og:audio",
    b"og:audio:url",
    b"twitter:image",
    b"twitter:image:src",
    b"msapplication-tileimage",
    b"msapplication-square70x70logo",
    b"msapplication-square150x150logo",
    b"msapplication-wide310x150logo",
    b"msapplication-square310x310logo",
    b"thumbnail",
    b"image",
];

/// Attributes of SVG that are properties of CSS with references.
const PRESENTATION: &[&[u8]] = &[
    b"clip-path",
    b"cursor",
    b"fill",
    b"filter",
    b"marker-end",
    b"marker-mid",
    b"marker-start",
    b"mask",
    b"stroke",
];

/// Attributes that never contain a reference.
const SILENT: &[&[u8]] = &[
    b"alt",
    b"as",
    b"charset",
    b"class",
    b"color",
    b"crossorigin",
    b"d",
    b"dir",
    b"for",
    b"height",
    b"hreflang",
    b"id",
    b"integrity",
    b"itemprop",
    b"itemscope",
    b"label",
    b"lang",
    b"language",
    b"loading",
    b"media",
    b"method",
    b"name",
    b"placeholder",
    b"points",
    b"property",
    b"rel",
    b"role",
    b"scope",
    b"size",
    b"sizes",
    b"summary",
    b"tabindex",
    b"target",
    b"title",
    b"transform",
    b"type",
    b"version",
    b"viewbox",
    b"width",
    b"xml:lang",
];
