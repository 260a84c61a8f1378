//! References in a document, found while it streams in.
//!
//! The tokenizer of html5gum pulls bytes, so it has a thread of its own. [`Finder::push`] sends it bytes, and returns
//! the found references when the tokenizer wants more.
//!
//! Source: WHATWG HTML sections 2.4, 4.2.3, 4.2.4, 4.8 and 4.12.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Readable, Reader, Span, Tokenizer};

use super::options::MAX_RESOURCES;
use super::scan::{Found, Scan};
use crate::client::Url;

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
                // If the message cannot be sent, the receiver is gone.
                tokenize(source, |found| _ = messages.send(Message::Found(found)));
            })?;
        let new = Self { bytes, found };
        new.collect();
        Ok(new)
    }

    /// Adds bytes of the document; returns the findings in them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Found> {
        if bytes.is_empty() || self.bytes.send(bytes.to_vec()).is_err() {
            return Vec::new();
        }
        self.collect()
    }

    /// Ends the document; returns the last findings.
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

/// Input of the tokenizer. It waits for no byte that it does not need: html5gum's own reader of streams waits for four.
struct Source {
    pieces: Receiver<Vec<u8>>,
    hungry: Sender<Message>,
    bytes: Vec<u8>,
    /// Bytes that have been read.
    at: usize,
}

impl Source {
    /// Waits for a piece after the unread bytes; returns false at the end of the document.
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

/// References, styles and the title of a whole document.
pub(super) fn found(document: &[u8]) -> Vec<Found> {
    let mut all = Vec::new();
    tokenize(document, |found| all.push(found));
    all
}

/// Returns the URLs of the resources in a document, the first [`MAX_RESOURCES`], without those in its style sheets.
pub(crate) fn resources(document: &[u8], url: &Url) -> Vec<Url> {
    let (mut base, mut all) = (url.clone(), Vec::new());
    for found in found(document) {
        match found {
            Found::Resource(_, reference) => all.extend(base.join(&reference)),
            Found::Base(reference) => base = url.join(&reference).unwrap_or(base),
            Found::Title(_) | Found::Css(_) => {}
        }
    }
    all.truncate(MAX_RESOURCES);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Kind;

    const PAGE: &str = r#"<!doctype html><html><head>
        <title> A &amp; B </title><base href="/b/"><base href="/no/">
        <link rel=stylesheet href=a.css><link REL="Alternate StyleSheet" href=no.css>
        <link rel="preload" as=font href=f.woff2><link rel=preload as=image imagesrcset="j.png, no 2x"><link rel=modulepreload href=m.mjs>
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
            resource(Kind::Image, "j.png"),
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
