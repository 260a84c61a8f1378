//! Variants of a key: the request fields that `Vary` names are part of the name of a file.
//!
//! The first response of a key has the name of the key. Its head has the id of its own variant. A request of another variant
//! looks at the file that the id of its variant names, and its response is stored there.
//!
//! The `Vary` of a new file is [`stored_vary`], from which nginx reads the same names. nginx itself stores the text as
//! received and does not split it at tabs. No request has the name with the tab, so all requests would
//! be one variant. Such a file has the id of no variant here and is not used.
//!
//! Source: RFC 9111 section 4.1; names of the files that nginx 1.31.4 writes.

use md5::{Digest, Md5};

use crate::disk::Header;
use crate::key::EntryId;
use crate::rfc9111::Vary;

/// Fields with lists in which nginx ignores spaces.
const NORMALISED: [&[u8]; 3] = [b"accept-charset", b"accept-encoding", b"accept-language"];

/// Returns the `Vary` of a new file: the names in lower case, sorted, joined by ", "; empty without names. Returns `None` if
/// no request selects the response, which cannot be stored.
#[must_use]
pub fn stored_vary(vary: &Vary) -> Option<Vec<u8>> {
    match vary {
        Vary::Any => None,
        Vary::Fields(names) => Some(names.join(&b", "[..])),
    }
}

/// Takes each value of a field.
pub type Add<'a> = dyn FnMut(&[u8]) + 'a;

/// Returns the id of a variant: of the id of a key and the values of the request fields that `vary` names.
///
/// `values` calls its second argument for each value of the field that the first names in lower case, in the order
/// received.
pub fn variant_id(
    main: &EntryId,
    vary: &[u8],
    mut values: impl FnMut(&[u8], &mut Add<'_>),
) -> EntryId {
    let mut md5 = Md5::new();
    md5.update(main.0);
    for name in names(vary) {
        let name = name.to_ascii_lowercase();
        let is_normalised = NORMALISED.contains(&&name[..]);
        md5.update(&name);
        md5.update(b":");
        let mut is_first = true;
        let mut add = |value: &[u8]| {
            if !std::mem::replace(&mut is_first, false) {
                md5.update(b",");
            }
            md5.update(value);
        };
        values(&name, &mut |value| {
            if is_normalised {
                words(value).for_each(&mut add);
            } else {
                add(value);
            }
        });
        md5.update(b"\r\n");
    }
    EntryId(md5.finalize().into())
}

/// Returns the names in a stored `Vary`, also behind tabs (RFC 9110 section 5.6.3).
pub(crate) fn names(vary: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = vary.split(|byte| matches!(byte, b' ' | b'\t' | b','));
    parts.filter(|part| !part.is_empty())
}

/// Returns the parts of a list between spaces and commas, as nginx splits values.
fn words(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = list.split(|byte| matches!(byte, b' ' | b','));
    parts.filter(|part| !part.is_empty())
}

/// Which file has the response for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The file at hand.
    This,
    /// The file of this variant.
    Other(EntryId),
    /// The file at hand was found by the id of a variant and has another: it is damaged.
    Mismatch,
}

/// Selects the file for a request, from the head of the file with the id `at` of the key with the id `main`.
///
/// `values` is that of [`variant_id`].
pub fn select(
    header: &Header<'_>,
    main: &EntryId,
    at: &EntryId,
    values: impl FnMut(&[u8], &mut Add<'_>),
) -> Selected {
    if header.vary.is_empty() {
        return Selected::This;
    }
    let id = variant_id(main, header.vary, values);
    if id == header.variant {
        Selected::This
    } else if main == at {
        Selected::Other(id)
    } else {
        Selected::Mismatch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc9111::FieldList;
    use engines::http::Fields;

    type Field = (&'static str, &'static str);

    fn id(vary: &str, fields: &[Field]) -> EntryId {
        variant_id(&EntryId([7; 16]), vary.as_bytes(), of(fields))
    }

    fn of(fields: &[Field]) -> impl FnMut(&[u8], &mut Add<'_>) {
        move |name, add| {
            let named = fields.iter().filter(|(n, _)| n.as_bytes() == name);
            named.for_each(|(_, value)| add(value.as_bytes()));
        }
    }

    #[test]
    fn equal_lists_are_one_variant() {
        let field = |value| [("accept-encoding", value)];
        let gzip_br = id("Accept-Encoding", &field("gzip, br"));
        for value in ["gzip,br", " gzip ,, br ", "gzip br"] {
            assert_eq!(id("accept-encoding", &field(value)), gzip_br, "{value}");
        }
        let twice = [("accept-encoding", "gzip"), ("accept-encoding", "br")];
        assert_eq!(id(" ,Accept-Encoding, ", &twice), gzip_br);
        for value in ["br, gzip", "gzip", "GZIP, br", ""] {
            assert_ne!(id("Accept-Encoding", &field(value)), gzip_br, "{value}");
        }
    }

    fn stored(values: &[&str]) -> Option<String> {
        let mut fields = Fields::default();
        for value in values {
            fields.push(b"Vary", value.as_bytes());
        }
        let text = stored_vary(&Vary::of(FieldList::from(&fields)))?;
        Some(String::from_utf8(text).expect("names are ASCII"))
    }

    /// RFC 9110 sections 5.6.1, 5.6.3: a tab is white space.
    #[test]
    fn names_behind_tabs_select_variants() {
        let text = "Accept-Encoding,\tCookie";
        let (one, other) = ([("cookie", "a=1")], [("cookie", "a=2")]);
        assert_ne!(id(text, &one), id(text, &other));
        assert_eq!(id(text, &one), id("accept-encoding, cookie", &one));
        assert_eq!(stored(&[text]).as_deref(), Some("accept-encoding, cookie"));
    }

    #[test]
    fn a_new_file_has_sorted_names() {
        for (values, expected) in [
            (&["X, \t a,,A\t", "B"][..], Some("a, b, x")),
            (&[], Some("")),
            (&[" , "], Some("")),
            (&["*"], None),
            (&["a, *"], None),
            (&["a b"], None),
            (&["a;b"], None),
        ] {
            assert_eq!(stored(values).as_deref(), expected, "{values:?}");
        }
    }

    /// Such a file of nginx could be the page of another user.
    #[test]
    fn a_file_that_ignored_a_name_is_not_used() {
        let main = EntryId([1; 16]);
        let mut md5 = Md5::new();
        md5.update(main.0);
        md5.update(b"a:1\r\n\tcookie:\r\n");
        let header = Header {
            vary: b"a,\tCookie",
            variant: EntryId(md5.finalize().into()),
            ..Header::default()
        };
        for fields in [&[("a", "1"), ("cookie", "x")][..], &[("a", "1")]] {
            let found = select(&header, &main, &main, of(&fields.to_vec().leak()[..]));
            let other = variant_id(&main, header.vary, of(&fields.to_vec().leak()[..]));
            assert_eq!(found, Selected::Other(other));
        }
    }

    #[test]
    fn other_fields_are_compared_verbatim() {
        let x = |value| id("X", &[("x", value)]);
        assert_ne!(x("a, b"), x("a,b"));
        assert_eq!(x("a,b"), id("X", &[("x", "a"), ("x", "b")]));
        assert_ne!(x("a"), id("Y", &[("y", "a")]));
        assert_eq!(id("X", &[]), x(""));
        assert_ne!(id("X, Y", &[]), id("Y, X", &[]));
    }

    #[test]
    fn a_file_is_selected_by_the_variant_of_its_head() {
        let (main, fields) = (EntryId([1; 16]), [("x", "a")]);
        let variant = variant_id(&main, b"X", of(&fields));
        let mut header = Header {
            vary: b"X",
            variant,
            ..Header::default()
        };
        let selected = |header: &Header<'_>, at, fields: &[Field]| {
            select(header, &main, at, of(&fields.to_vec().leak()[..]))
        };
        assert_eq!(selected(&header, &main, &fields), Selected::This);
        assert_eq!(selected(&header, &variant, &fields), Selected::This);
        let other = variant_id(&main, b"X", of(&[]));
        assert_eq!(selected(&header, &main, &[]), Selected::Other(other));
        assert_eq!(selected(&header, &variant, &[]), Selected::Mismatch);
        header.vary = b"";
        assert_eq!(selected(&header, &other, &[]), Selected::This);
    }
}
