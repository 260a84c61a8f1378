//! Distinguished names: as texts, and whether two are the same.
//!
//! Source: RFC 2253; RFC 5280 section 7.1; X509_NAME_print_ex(3) and X509_NAME_oneline(3) for the forms nginx shows.

use std::fmt::Write as _;

use super::der::{self, Reader, Value};

/// One attribute of a name.
struct Attribute<'a> {
    id: &'a [u8],
    value: Value<'a>,
    /// It is in one set with the one before.
    joined: bool,
}

/// The attributes of a name, in order, up to an unreadable one.
fn attributes(name: &[u8]) -> Vec<Attribute<'_>> {
    let mut found = Vec::new();
    let Some(mut sets) = Reader::new(name).sequence() else {
        return found;
    };
    while let Some(set) = sets.body(der::SET) {
        let mut set = Reader::new(set);
        let mut joined = false;
        while let Some(mut pair) = set.sequence() {
            let (Some(id), Some(value)) = (pair.body(der::OID), pair.value()) else {
                return found;
            };
            found.push(Attribute { id, value, joined });
            joined = true;
        }
    }
    found
}

/// The text of a string of one of the types of names; `None` if it is no string.
fn text(value: &Value<'_>) -> Option<String> {
    Some(match value.tag {
        der::UTF8_STRING => String::from_utf8_lossy(value.body).into_owned(),
        der::PRINTABLE_STRING
        | der::TELETEX_STRING
        | der::IA5_STRING
        | NUMERIC_STRING
        | VISIBLE_STRING => value.body.iter().map(|byte| char::from(*byte)).collect(),
        der::BMP_STRING => {
            let units = value.body.chunks_exact(2);
            let units: Vec<u16> = units
                .map(|two| u16::from_be_bytes([two[0], two[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        der::UNIVERSAL_STRING => {
            let four = value.body.chunks_exact(4);
            let number = four.map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
            number
                .map(|number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        _ => return None,
    })
}

/// The common names, in order.
pub(crate) fn common_names(name: &[u8]) -> Vec<String> {
    let all = attributes(name).into_iter();
    let common = all.filter(|attribute| attribute.id == COMMON_NAME);
    common
        .filter_map(|attribute| text(&attribute.value))
        .collect()
}

/// The name in the form of RFC 2253, the last attribute first: `CN=a,O=b,C=DE`.
pub(crate) fn rfc2253(name: &[u8]) -> String {
    let mut out = String::new();
    let attributes = attributes(name);
    for set in attributes.chunk_by(|_, next| next.joined).rev() {
        if !out.is_empty() {
            out.push(',');
        }
        // OpenSSL turns sets over as well.
        for (n, attribute) in set.iter().rev().enumerate() {
            if n > 0 {
                out.push('+');
            }
            attribute_2253(attribute, &mut out);
        }
    }
    out
}

fn attribute_2253(attribute: &Attribute<'_>, out: &mut String) {
    let known = label(attribute.id, out);
    let Some(text) = text(&attribute.value).filter(|_| known) else {
        out.push('#');
        return hex(attribute.value.whole, out);
    };
    let bytes = text.as_bytes();
    for (n, byte) in bytes.iter().enumerate() {
        let first = n == 0 && matches!(byte, b' ' | b'#');
        let last = n + 1 == bytes.len() && *byte == b' ';
        if first || last || b",+\"\\<>;".contains(byte) {
            out.push('\\');
        }
        match byte {
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
}

/// The name in the older form: `/C=DE/O=b/CN=a`.
pub(crate) fn oneline(name: &[u8]) -> String {
    let mut out = String::new();
    for attribute in attributes(name) {
        out.push(if attribute.joined { '+' } else { '/' });
        label(attribute.id, &mut out);
        for byte in attribute.value.body {
            match byte {
                b' '..=b'~' => {
                    if matches!(byte, b'/' | b'+') {
                        out.push('\\');
                    }
                    out.push(char::from(*byte));
                }
                _ => {
                    let _ = write!(out, "\\x{byte:02X}");
                }
            }
        }
    }
    out
}

/// A canonical form, equal for two names if and only if they differ only in case, spaces and types of strings.
pub(crate) fn canonical(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for attribute in attributes(name) {
        out.push(u8::from(attribute.joined));
        out.extend_from_slice(&(attribute.id.len() as u32).to_be_bytes());
        out.extend_from_slice(attribute.id);
        let value = match text(&attribute.value) {
            Some(text) => {
                let words: Vec<&str> = text.split_ascii_whitespace().collect();
                words.join(" ").to_ascii_lowercase().into_bytes()
            }
            None => attribute.value.whole.to_vec(),
        };
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(&value);
    }
    out
}

/// Writes the name of an attribute, and "="; false if only numbers identify it.
fn label(id: &[u8], out: &mut String) -> bool {
    let name = short_name(id);
    match name {
        Some(name) => out.push_str(name),
        None => dotted(id, out),
    }
    out.push('=');
    name.is_some()
}

/// Writes bytes hexadecimal.
pub(super) fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02X}");
    }
}

/// Writes an object identifier in numbers.
fn dotted(id: &[u8], out: &mut String) {
    let mut number = 0_u64;
    let mut first = true;
    for byte in id {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if first {
            let top = (number / 40).min(2);
            let _ = write!(out, "{top}.{}", number - 40 * top);
        } else {
            let _ = write!(out, ".{number}");
        }
        (number, first) = (0, false);
    }
}

/// Name of an attribute in OpenSSL.
fn short_name(id: &[u8]) -> Option<&'static str> {
    let (last, above) = id.split_last()?;
    let mut known = SHORT_NAMES.iter();
    let found = known.find(|(arc, number, _)| number == last && *arc == above);
    found.map(|(_, _, name)| *name)
}

/// `id-at`
const X520: &[u8] = &[0x55, 4];
/// `pkcs-9`
const PKCS9: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9];
/// `pilotAttributeType`
const PILOT: &[u8] = &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1];
/// Place of a company's registration, by Microsoft.
const JURISDICTION: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x3c, 2, 1];

const SHORT_NAMES: &[(&[u8], u8, &str)] = &[
    (X520, 3, "CN"),
    (X520, 4, "SN"),
    (X520, 5, "serialNumber"),
    (X520, 6, "C"),
    (X520, 7, "L"),
    (X520, 8, "ST"),
    (X520, 9, "street"),
    (X520, 10, "O"),
    (X520, 11, "OU"),
    (X520, 12, "title"),
    (X520, 13, "description"),
    (X520, 15, "businessCategory"),
    (X520, 16, "postalAddress"),
    (X520, 17, "postalCode"),
    (X520, 18, "postOfficeBox"),
    (X520, 20, "telephoneNumber"),
    (X520, 41, "name"),
    (X520, 42, "GN"),
    (X520, 43, "initials"),
    (X520, 44, "generationQualifier"),
    (X520, 45, "x500UniqueIdentifier"),
    (X520, 46, "dnQualifier"),
    (X520, 65, "pseudonym"),
    (X520, 72, "role"),
    (X520, 97, "organizationIdentifier"),
    (PKCS9, 1, "emailAddress"),
    (PKCS9, 2, "unstructuredName"),
    (PKCS9, 8, "unstructuredAddress"),
    (PILOT, 1, "UID"),
    (PILOT, 3, "mail"),
    (PILOT, 25, "DC"),
    (JURISDICTION, 1, "jurisdictionL"),
    (JURISDICTION, 2, "jurisdictionST"),
    (JURISDICTION, 3, "jurisdictionC"),
];

const NUMERIC_STRING: u8 = 0x12;
const VISIBLE_STRING: u8 = 0x1a;

/// `id-at-commonName`.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, body: &[u8]) -> Vec<u8> {
        [&[tag, body.len() as u8][..], body].concat()
    }

    /// Identifier, tag and text of an attribute.
    type Pair<'a> = (&'a [u8], u8, &'a [u8]);

    fn name(sets: &[&[Pair<'_>]]) -> Vec<u8> {
        let pair = |(id, tag, text): &Pair<'_>| {
            let inner = [value(der::OID, id), value(*tag, text)].concat();
            value(der::SEQUENCE, &inner)
        };
        let set =
            |pairs: &&[Pair<'_>]| value(der::SET, &pairs.iter().flat_map(pair).collect::<Vec<_>>());
        value(
            der::SEQUENCE,
            &sets.iter().flat_map(set).collect::<Vec<_>>(),
        )
    }

    const CN: &[u8] = &[0x55, 4, 3];
    const O: &[u8] = &[0x55, 4, 10];
    const C: &[u8] = &[0x55, 4, 6];

    #[test]
    fn names_are_written_as_openssl_writes_them() {
        let sample = name(&[
            &[(C, der::PRINTABLE_STRING, b"DE")],
            &[(O, der::UTF8_STRING, "a, \"b\" Ö".as_bytes())],
            &[
                (CN, der::UTF8_STRING, b"#x "),
                (&[0x2b, 6, 1, 4, 1, 0x82, 0x37], der::UTF8_STRING, b"v"),
            ],
        ]);
        assert_eq!(
            rfc2253(&sample),
            "1.3.6.1.4.1.311=#0C0176+CN=\\#x\\ ,O=a\\, \\\"b\\\" \\C3\\96,C=DE"
        );
        assert_eq!(
            oneline(&sample),
            "/C=DE/O=a, \"b\" \\xC3\\x96/CN=#x +1.3.6.1.4.1.311=v"
        );
        assert_eq!(rfc2253(b"junk"), "");
    }

    #[test]
    fn names_are_the_same_but_for_case_spaces_and_types() {
        let one = name(&[&[(CN, der::PRINTABLE_STRING, b"Some  CA ")]]);
        let other = name(&[&[(CN, der::BMP_STRING, b"\0s\0o\0m\0e\0 \0c\0a")]]);
        assert_eq!(canonical(&one), canonical(&other));
        let third = name(&[&[(CN, der::PRINTABLE_STRING, b"SomeCA")]]);
        assert_ne!(canonical(&one), canonical(&third));
        let fourth = name(&[&[(O, der::PRINTABLE_STRING, b"Some CA")]]);
        assert_ne!(canonical(&one), canonical(&fourth));
    }
}
