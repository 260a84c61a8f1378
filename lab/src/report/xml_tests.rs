//! A strict parser of the XML that pictures use: elements with their attributes.

use std::collections::BTreeMap;

/// An element with its attributes and its own text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Element {
    /// Returns an attribute as a number.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> f64 {
        let value = self.attributes.get(name);
        let value = value.unwrap_or_else(|| panic!("{name} is in {self:?}"));
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number in {self:?}"))
    }

    /// Whether it has a class.
    pub(crate) fn is(&self, class: &str) -> bool {
        let classes = self.attributes.get("class");
        classes.is_some_and(|classes| classes.split(' ').any(|one| one == class))
    }
}

/// Returns the elements of a document in the order of their start tags.
///
/// # Errors
/// The first fault.
pub(crate) fn elements(text: &str) -> Result<Vec<Element>, String> {
    let (mut found, mut open) = (Vec::<Element>::new(), Vec::<usize>::new());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let before = unescaped(before)?;
        match open.last() {
            Some(element) => found[*element].text += &before,
            None if !before.trim().is_empty() => return Err(format!("text outside: {before}")),
            None if open.is_empty() && !found.is_empty() => return Err("a second root".to_owned()),
            None => {}
        }
        let end = tag.find('>').ok_or("a tag without an end")?;
        let (tag, behind) = (&tag[1..end], &tag[end + 1..]);
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            let last = open
                .pop()
                .ok_or_else(|| format!("</{name}> ends nothing"))?;
            if found[last].name != name {
                return Err(format!("</{name}> ends {}", found[last].name));
            }
            continue;
        }
        let (tag, is_empty) = tag
            .strip_suffix('/')
            .map_or((tag, false), |tag| (tag, true));
        found.push(element(tag)?);
        if !is_empty {
            open.push(found.len() - 1);
        }
    }
    match (open.last(), rest.trim()) {
        (None, "") => Ok(found),
        (Some(last), _) => Err(format!("<{}> has no end", found[*last].name)),
        (None, text) => Err(format!("text behind: {text}")),
    }
}

/// Parses the text between `<` and `>`.
fn element(tag: &str) -> Result<Element, String> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("<{tag}> has no name"));
    }
    let mut element = Element {
        name: name.to_owned(),
        ..Element::default()
    };
    while !rest.is_empty() {
        let (name, value) = rest
            .split_once("=\"")
            .ok_or_else(|| format!("attributes of <{tag}>"))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!("attribute {name:?} of <{tag}>"));
        }
        let (value, behind) = value
            .split_once('"')
            .ok_or_else(|| format!("quotes of <{tag}>"))?;
        if element
            .attributes
            .insert(name.to_owned(), unescaped(value)?)
            .is_some()
        {
            return Err(format!("{name} is twice in <{tag}>"));
        }
        rest = match behind.strip_prefix(' ') {
            Some(behind) => behind,
            None if behind.is_empty() => behind,
            None => return Err(format!("no space in <{tag}>")),
        };
    }
    Ok(element)
}

/// Resolves the references of a text; characters that XML forbids are errors.
fn unescaped(text: &str) -> Result<String, String> {
    let is_allowed =
        |c: char| matches!(c, '\t' | '\n' | ' '..='\u{7e}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    if let Some(c) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(format!("{c:?} in {text:?}"));
    }
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, behind) = part.split_once(';').ok_or_else(|| format!("&{part}"))?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            _ => return Err(format!("&{name};")),
        });
        out += behind;
    }
    Ok(out)
}

#[test]
fn broken_documents_are_refused() {
    for text in [
        "<a>",
        "<a></b>",
        "<a x=1/>",
        "<a x=\"1\" x=\"2\"/>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a/><b/>",
        "<a>\u{1}</a>",
        "x<a/>",
        "<a/>x",
        "<a x=\"1\"y=\"2\"/>",
    ] {
        assert!(elements(text).is_err(), "{text}");
    }
    let found = elements("<a x=\"1 &lt;\"><b/>t&amp;</a>\n").expect("it is well-formed");
    assert_eq!((found.len(), found[0].text.as_str()), (2, "t&"));
    assert_eq!(found[0].attributes["x"], "1 <");
}
