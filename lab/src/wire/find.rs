//! References in a document, found while it streams in.
//!
//! The tokenizer of html5gum asks for bytes when it needs some, so it has a thread of its own: [`Finder::push`] gives it bytes
//! and returns what it has found when it asks for more.
//!
//! Source: WHATWG HTML sections 2.4, 4.2.3, 4.2.4, 4.8 and 4.12.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Readable, Reader, Span, Tokenizer};

use super::options::MAX_RESOURCES;
use crate::client::Url;
use crate::page::Kind;

/// Something that a document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A resource that is asked for.
    Resource(Kind, String),
    /// The URL that references are relative to.
    Base(String),
    Title(String),
    /// The text of a style sheet.
    Css(String),
}

/// Finds them.
pub(super) struct Finder {
    bytes: Sender<Vec<u8>>,
    found: Receiver<Message>,
}

enum Message {
    Found(Found),
    /// More bytes are needed.
    Hungry,
}

impl Finder {
    /// A finder of one document.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn new() -> io::Result<Self> {
        let (bytes, pieces) = channel();
        let (messages, found) = channel();
        let source = Source {
            pieces,
            hungry: messages.clone(),
            bytes: Vec::new(),
            at: 0,
        };
        thread::Builder::new()
            .name("html".to_owned())
            .spawn(move || {
                // Nobody listens any more where it cannot be sent.
                tokenize(source, |found| _ = messages.send(Message::Found(found)));
            })?;
        let new = Self { bytes, found };
        new.collect();
        Ok(new)
    }

    /// Takes bytes of the document; returns what they say.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Found> {
        if bytes.is_empty() || self.bytes.send(bytes.to_vec()).is_err() {
            return Vec::new();
        }
        self.collect()
    }

    /// The document has ended; returns what only its end says.
    pub(super) fn finish(self) -> Vec<Found> {
        drop(self.bytes);
        let found = self.found.into_iter();
        found
            .filter_map(|message| match message {
                Message::Found(found) => Some(found),
                Message::Hungry => None,
            })
            .collect()
    }

    /// References that the thread finds before it needs more bytes.
    fn collect(&self) -> Vec<Found> {
        let mut all = Vec::new();
        while let Ok(Message::Found(found)) = self.found.recv() {
            all.push(found);
        }
        all
    }
}

/// Where the tokenizer reads. It waits for no byte that it does not need: html5gum's own reader of streams waits for four.
struct Source {
    pieces: Receiver<Vec<u8>>,
    hungry: Sender<Message>,
    bytes: Vec<u8>,
    /// How many of them were read.
    at: usize,
}

impl Source {
    /// Waits for a piece behind what is unread; returns false at the end of the document.
    fn wait(&mut self) -> bool {
        let _ = self.hungry.send(Message::Hungry);
        let Ok(piece) = self.pieces.recv() else {
            return false;
        };
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(&piece);
        true
    }
}

impl Reader for Source {
    type Error = Infallible;

    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        while self.at == self.bytes.len() {
            if !self.wait() {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.bytes[self.at - 1]))
    }

    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        loop {
            let unread = &self.bytes[self.at..];
            let len = unread.len().min(text.len());
            let is_equal = match case_sensitive {
                true => unread[..len] == text[..len],
                false => unread[..len].eq_ignore_ascii_case(&text[..len]),
            };
            if !is_equal {
                return Ok(false);
            }
            if len == text.len() {
                self.at += len;
                return Ok(true);
            }
            if !self.wait() {
                return Ok(false);
            }
        }
    }

    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        _: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, Infallible> {
        while self.at == self.bytes.len() {
            if !self.wait() {
                return Ok(None);
            }
        }
        let unread = &self.bytes[self.at..];
        let found = unread.iter().position(|byte| needle.contains(byte));
        let len = found.map_or(unread.len(), |at| at.max(1));
        self.at += len;
        Ok(Some(&self.bytes[self.at - len..self.at]))
    }
}

/// The URLs of the resources that a whole document names, the first [`MAX_RESOURCES`], without those of its style sheets.
pub(crate) fn resources(document: &[u8], url: &Url) -> Vec<Url> {
    let (mut base, mut all) = (url.clone(), Vec::new());
    tokenize(document, |found| match found {
        Found::Resource(_, reference) if all.len() < MAX_RESOURCES => {
            all.extend(base.join(&reference));
        }
        Found::Base(reference) => {
            if let Ok(found) = url.join(&reference) {
                base = found;
            }
        }
        _ => {}
    });
    all
}

fn tokenize<'a, R>(source: impl Readable<'a, Reader = R>, mut tell: impl FnMut(Found))
where
    R: Reader<Error = Infallible> + 'a,
{
    let mut scan = Scan::default();
    // Tokens that the tokenizer returns are a byte late; this is called at the end of each.
    let told = |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        scan.event(event).into_iter().for_each(&mut tell);
        None
    };
    let mut emitter = CallbackEmitter::new(told);
    emitter.naively_switch_states(true);
    let tokens = Tokenizer::new_with_emitter(source, emitter);
    let Ok(()) = tokens.finish();
}

/// A start tag.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    /// Of several attributes of a name the first counts.
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Where in the document the tokenizer is.
#[derive(Default)]
struct Scan {
    /// The start tag that has begun.
    tag: Option<Tag>,
    /// The element whose text comes next.
    text_of: Option<TextOf>,
    /// Elements whose content is no part of the page, as it is where scripts run: `noscript` and `template`.
    inert: usize,
    has_base: bool,
    /// A `picture`, `video` or `audio` has its source.
    has_source: bool,
}

#[derive(Clone, Copy)]
enum TextOf {
    Title,
    Style,
}

impl Scan {
    fn event(&mut self, event: CallbackEvent<'_>) -> Vec<Found> {
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
                    Some(TextOf::Title) => vec![Found::Title(text.trim().to_owned())],
                    Some(TextOf::Style) => vec![Found::Css(text.into_owned())],
                    None => Vec::new(),
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
                    want(kind, attribute(tag, b"href"));
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
                let image = attribute(tag, b"srcset").and_then(|set| first_candidate(&set));
                let media = attribute(tag, b"src");
                self.has_source = image.is_some() || media.is_some();
                want(Kind::Image, image);
                want(Kind::Media, media);
            }
            // In a `picture` an image is for browsers that take none of the sources.
            b"img" if self.has_source => self.has_source = false,
            b"img" => {
                let set = attribute(tag, b"srcset").and_then(|set| first_candidate(&set));
                want(Kind::Image, set.or_else(|| attribute(tag, b"src")));
            }
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

/// Whether a script is one that browsers run: data blocks and those for browsers without modules are not.
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

/// The URL of the first candidate of a `srcset`.
fn first_candidate(set: &str) -> Option<String> {
    let blank = |c: char| c.is_ascii_whitespace() || c == ',';
    let set = set.trim_start_matches(blank);
    let url = set.split_ascii_whitespace().next()?;
    let url = url.trim_end_matches(',');
    (!url.is_empty()).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<!doctype html><html><head>
        <title> A &amp; B </title><base href="/b/"><base href="/no/">
        <link rel=stylesheet href=a.css><link REL="Alternate StyleSheet" href=no.css>
        <link rel="preload" as=font href=f.woff2><link rel=modulepreload href=m.mjs>
        <link rel="shortcut icon" href=i.ico><link rel=canonical href=no>
        <script src=a.js></script><script type="application/ld+json" src=no.js></script>
        <script>document.write("<img src=no.png>")</script>
        <script type=text/JavaScript src='b.js?x=1&amp;y'></script><script nomodule src=no.js></script>
        <style>@import "c.css";</style></head>
        <body style="background: url(d.png)"><img src="1.png"><IMG srcset="2.png 1x, 3.png 2x" src=no.png>
        <picture><source srcset="4.webp, 5.webp 2x"><source srcset=no><img src=no.png></picture><img src=6.png>
        <video poster=p.jpg><source src=v.mp4><source src=no.webm></video><audio src=a.ogg></audio>
        <video preload=none src=no.mp4></video><noscript><img src=no.png></noscript>
        <template><img src=no.png></template><!-- <img src=no.png> --><iframe src=no.html></iframe>
        <input type=image src=7.png><input src=no.png><img src=""><img src="8.png"#;

    fn expected() -> Vec<Found> {
        let resource = |kind, text: &str| Found::Resource(kind, text.to_owned());
        vec![
            Found::Title("A & B".to_owned()),
            Found::Base("/b/".to_owned()),
            resource(Kind::Stylesheet, "a.css"),
            resource(Kind::Font, "f.woff2"),
            resource(Kind::Script, "m.mjs"),
            resource(Kind::Image, "i.ico"),
            resource(Kind::Script, "a.js"),
            resource(Kind::Script, "b.js?x=1&y"),
            Found::Css("@import \"c.css\";".to_owned()),
            Found::Css("background: url(d.png)".to_owned()),
            resource(Kind::Image, "1.png"),
            resource(Kind::Image, "2.png"),
            resource(Kind::Image, "4.webp"),
            resource(Kind::Image, "6.png"),
            resource(Kind::Image, "p.jpg"),
            resource(Kind::Media, "v.mp4"),
            resource(Kind::Media, "a.ogg"),
            resource(Kind::Image, "7.png"),
        ]
    }

    #[test]
    fn resources_are_found_however_the_document_is_cut() {
        for step in [1, 3, 50, usize::MAX] {
            let mut finder = Finder::new().expect("a thread");
            let pieces = PAGE.as_bytes().chunks(step);
            let mut found: Vec<Found> = pieces.flat_map(|piece| finder.push(piece)).collect();
            found.extend(finder.finish());
            assert_eq!(found, expected(), "in pieces of {step}");
        }
    }

    #[test]
    fn resources_of_a_whole_document_are_urls() {
        let url = Url::parse("https://h:8443/a/b.html?c").expect("a URL");
        let page = br#"<link rel=stylesheet href=s.css><img src='/i.png'><script src="//h:8443/x.js"></script>
            <img src="data:image/png;base64,AA"><img><a href="no"><img src="http://[bad"><base href=/d/><img src=../e f>"#;
        let found = resources(page, &url);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = ["/a/s.css", "/i.png", "/x.js", "/e"];
        assert_eq!(found, expected.map(|path| format!("https://h:8443{path}")));
        for count in [MAX_RESOURCES, MAX_RESOURCES + 1] {
            let page = "<img src=a>".repeat(count);
            assert_eq!(resources(page.as_bytes(), &url).len(), MAX_RESOURCES);
        }
    }

    #[test]
    fn resources_are_found_as_soon_as_their_tag_ends() {
        let mut finder = Finder::new().expect("a thread");
        assert!(finder.push(b"<link rel=stylesheet href=a.css").is_empty());
        let found = Found::Resource(Kind::Stylesheet, "a.css".to_owned());
        assert_eq!(finder.push(b">"), [found]);
        assert!(finder.push(b"<p>").is_empty());
        assert!(finder.finish().is_empty());
    }
}
