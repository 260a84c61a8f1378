//! Variants of a key: the request fields that `Vary` names are part of the name of a file.
//!
//! The first response of a key has the name of the key. Its head has the id of its own variant. A request of another variant
//! looks at the file that the id of its variant names, and its response is stored there.
//!
//! Source: RFC 9111 section 4.1; names of the files that nginx 1.31.4 writes.

use md5::{Digest, Md5};

use crate::disk::Header;
use crate::key::EntryId;

/// Fields with lists in which nginx ignores spaces.
const NORMALISED: [&[u8]; 3] = [b"accept-charset", b"accept-encoding", b"accept-language"];

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
    for name in words(vary) {
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

/// Returns the parts of a list between spaces and commas.
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
