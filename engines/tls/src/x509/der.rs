//! DER, as far as certificates, keys, revocation lists and OCSP need it: tags of one byte, definite lengths.
//!
//! Other input is read as absent; no input panics.
//!
//! Source: ITU-T X.690 sections 8 and 10.

/// Values one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
    /// Tag, length and body.
    pub(crate) whole: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tag of the next value.
    pub(crate) fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next value.
    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (head, len) = match first {
            0..=0x7f => (2, usize::from(first)),
            0x81..=0x84 => {
                let bytes = rest.get(..usize::from(first & 0x7f))?;
                let len = bytes
                    .iter()
                    .fold(0, |len, byte| len << 8 | usize::from(*byte));
                // The shortest form alone is DER.
                if len < 0x80 || bytes[0] == 0 {
                    return None;
                }
                (2 + bytes.len(), len)
            }
            _ => return None,
        };
        let whole = self.0.get(..head.checked_add(len)?)?;
        self.0 = &self.0[whole.len()..];
        Some(Value {
            tag,
            body: &whole[head..],
            whole,
        })
    }

    /// The next value, which must have this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<Value<'a>> {
        if self.tag() == Some(tag) {
            self.value()
        } else {
            None
        }
    }

    /// The body of the next value, which must have this tag.
    pub(crate) fn body(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.expect(tag).map(|value| value.body)
    }

    /// The values inside the next one, which must be a sequence.
    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.body(SEQUENCE).map(Self)
    }

    /// The bytes of the next value, which must be a bit string of whole bytes.
    pub(crate) fn bit_string(&mut self) -> Option<&'a [u8]> {
        match self.body(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }

    /// Whether the next value is "true". A value of another type belongs to the next field, so the boolean is
    /// absent and "false".
    pub(crate) fn flag(&mut self) -> bool {
        self.body(BOOLEAN).is_some_and(|body| body != [0])
    }

    /// The next value, which must be a small integer that is not negative.
    pub(crate) fn small(&mut self) -> Option<u32> {
        let bytes = self.body(INTEGER)?;
        if bytes.is_empty() || bytes[0] & 0x80 != 0 || bytes.len() > 5 {
            return None;
        }
        let number = bytes
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        u32::try_from(number).ok()
    }
}

/// A value of this tag with a body of these parts.
pub(crate) fn encode(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    match u8::try_from(len) {
        Ok(short @ 0..=0x7f) => bytes.push(short),
        _ => {
            let all = len.to_be_bytes();
            let first = all.iter().position(|byte| *byte != 0).unwrap_or(0);
            bytes.push(0x80 | (all.len() - first) as u8);
            bytes.extend_from_slice(&all[first..]);
        }
    }
    bytes.extend(parts.iter().copied().flatten());
    bytes
}

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const TELETEX_STRING: u8 = 0x14;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const UNIVERSAL_STRING: u8 = 0x1c;
pub(crate) const BMP_STRING: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The tag of a constructed context-specific value.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_form() {
        let mut long = vec![OCTET_STRING, 0x81, 0x80];
        long.extend([7; 0x80]);
        let value = Reader::new(&long).value().expect("it is whole");
        assert_eq!((value.body.len(), value.whole.len()), (0x80, 0x83));
        for wrong in [
            &[4][..],
            &[4, 1],
            &[4, 0x80, 0, 0],
            &[4, 0x81, 1, 7],
            &[4, 0x82, 0, 0x80],
            &[4, 0x85, 1, 1, 1, 1, 1],
            &[0x1f, 0],
        ] {
            assert!(Reader::new(wrong).value().is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for len in [0, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x1_0000] {
            let body = vec![7; len];
            let (first, second) = body.split_at(len / 2);
            let der = encode(OCTET_STRING, &[first, second]);
            let value = Reader::new(&der).value().expect("it is whole");
            assert_eq!((value.body, value.whole), (&body[..], &der[..]));
        }
    }

    #[test]
    fn small_numbers_are_read() {
        assert_eq!(Reader::new(&[2, 1, 5]).small(), Some(5));
        assert_eq!(
            Reader::new(&[2, 5, 0, 0xff, 0xff, 0xff, 0xff]).small(),
            Some(u32::MAX)
        );
        assert_eq!(Reader::new(&[2, 1, 0x80]).small(), None);
        assert_eq!(Reader::new(&[2, 0]).small(), None);
    }
}
