//! Names of well-known fields in HTTP/2's form: in lower case, with their index in HPACK's static table.

use crate::hpack::Name;
use crate::http::FieldId;

/// The name of a field; `None` for fields without a number.
#[inline]
pub(super) fn of(id: FieldId) -> Option<Name<'static>> {
    NAMES.get((id as usize).checked_sub(1)?).copied()
}

static NAMES: [Name<'static>; COUNT] = {
    let mut names = [Name::new(b""); COUNT];
    let mut n = 0;
    while n < COUNT {
        let (text, _) = TEXTS[n].split_at(FieldId::ALL[n].name().len());
        names[n] = Name::new(text);
        n += 1;
    }
    names
};

static TEXTS: [[u8; LONGEST]; COUNT] = {
    let mut texts = [[0; LONGEST]; COUNT];
    let mut n = 0;
    while n < COUNT {
        let name = FieldId::ALL[n].name().as_bytes();
        let mut at = 0;
        while at < name.len() {
            texts[n][at] = name[at].to_ascii_lowercase();
            at += 1;
        }
        n += 1;
    }
    texts
};

const COUNT: usize = FieldId::ALL.len();
/// Bytes of the longest name, `If-Unmodified-Since`.
const LONGEST: usize = 19;
