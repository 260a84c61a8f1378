//! `Vary`: the fields of a request that select a stored response, and the secondary key made of them.
//!
//! Absent: the number of variants of a key, a limit of the caller. Source: RFC 9111 section 4.1; RFC 9110 section 12.5.5.

use engines::http::{FieldId, is_token};

use super::field_list::{Elements, FieldList};
use super::vary_value::{push_accept_encoding, push_accept_language, push_cookie, push_list};

/// The selecting fields of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// `*`, or text that is no list of names: no other request matches.
    Any,
    /// Names of fields in lower case, sorted, each once. No names: the response matches each request.
    Fields(Vec<Box<[u8]>>),
}

impl Default for Vary {
    fn default() -> Self {
        Self::Fields(Vec::new())
    }
}

/// Settings of normal forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaryPolicy {
    /// `en, de` and `de, en` differ. RFC 9110 section 12.5.4 gives the order no meaning; some servers do.
    pub language_order_matters: bool,
}

impl Vary {
    /// Parses the `Vary` fields of a response.
    #[must_use]
    pub fn of(response: FieldList<'_>) -> Self {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for name in response.by_id(FieldId::Vary).flat_map(Elements::new) {
            if name == b"*" || !is_token(name) {
                return Self::Any;
            }
            names.push(name.to_ascii_lowercase().into());
        }
        names.sort_unstable();
        names.dedup();
        Self::Fields(names)
    }

    /// Whether there is no selecting field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Fields(names) if names.is_empty())
    }

    /// Appends the secondary key of a request: a line for each selecting field, with its name and normal value. An absent
    /// field has its name alone.
    ///
    /// Two requests match if their keys are equal. Returns false, with nothing appended, for [`Vary::Any`].
    pub fn push_secondary_key(
        &self,
        request: FieldList<'_>,
        policy: VaryPolicy,
        out: &mut Vec<u8>,
    ) -> bool {
        let Self::Fields(names) = self else {
            return false;
        };
        for name in names {
            out.extend_from_slice(name);
            let mut values = request.named(name).peekable();
            if values.peek().is_some() {
                out.push(b':');
                match &**name {
                    b"accept-encoding" => push_accept_encoding(values, out),
                    b"accept-language" => {
                        push_accept_language(values, policy.language_order_matters, out);
                    }
                    b"cookie" => push_cookie(values, out),
                    _ => push_list(values, out),
                }
            }
            out.push(b'\n');
        }
        true
    }

    /// Returns whether two requests match in all selecting fields.
    #[must_use]
    pub fn matches(
        &self,
        stored_request: FieldList<'_>,
        request: FieldList<'_>,
        policy: VaryPolicy,
    ) -> bool {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.push_secondary_key(stored_request, policy, &mut first)
            && self.push_secondary_key(request, policy, &mut second)
            && first == second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    fn fields(list: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in list {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn vary(values: &[&str]) -> Vary {
        let list: Vec<_> = values.iter().map(|value| ("Vary", *value)).collect();
        Vary::of(FieldList::from(&fields(&list)))
    }

    fn key(vary: &Vary, request: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        let request = fields(request);
        vary.push_secondary_key(FieldList::from(&request), VaryPolicy::default(), &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    /// RFC 9111 section 4.1: a member "*" always fails to match.
    #[test]
    fn a_star_anywhere_matches_no_request() {
        for values in [
            &["*"][..],
            &["*, *"],
            &["*", "*"],
            &[", *"],
            &["", "*"],
            &["*, Foo"],
            &["Foo, *"],
            &["Foo", "*"],
            &["Foo Bar"],
            &["\"Foo\""],
        ] {
            assert_eq!(vary(values), Vary::Any, "{values:?}");
        }
        let none = fields(&[]);
        let none = FieldList::from(&none);
        assert!(!Vary::Any.matches(none, none, VaryPolicy::default()));
        assert!(!Vary::Any.is_empty());
    }

    /// RFC 9110 section 12.5.5: names have no case and no order.
    #[test]
    fn names_are_a_sorted_set() {
        let names = vary(&["Foo, accept-encoding,,", "FOO, Bar"]);
        assert_eq!(names, vary(&["bar, foo, Accept-Encoding"]));
        assert_eq!(key(&names, &[]), "accept-encoding\nbar\nfoo\n");
        assert!(vary(&[" , "]).is_empty() && vary(&[]).is_empty() && !names.is_empty());
    }

    /// RFC 9111 section 4.1.
    #[test]
    fn an_absent_field_matches_only_an_absent_one() {
        let foo = vary(&["Foo"]);
        assert_eq!(key(&foo, &[("Foo", "1"), ("Other", "2")]), "foo:1\n");
        assert_eq!(key(&foo, &[("Foo", "")]), "foo:\n");
        assert_eq!(key(&foo, &[("Other", "2")]), "foo\n");
    }

    /// RFC 9111 section 4.1: each field has its own normal form.
    #[test]
    fn values_are_normalised_by_field() {
        let all = vary(&["Accept-Encoding, Accept-Language, Cookie, Foo"]);
        let request = [
            ("Accept-Encoding", "GZIP;q=0.5, br"),
            ("Accept-Language", "EN ; q=0.50, de"),
            ("Cookie", "a=1"),
            ("foo", " 1, 2 "),
            ("FOO", "3"),
            ("Cookie", "b=2"),
        ];
        let expected = "accept-encoding:br,gzip\naccept-language:de,en;q=0.5\ncookie:a=1; b=2\n\
                        foo:1,2,3\n";
        assert_eq!(key(&all, &request), expected);
    }

    #[test]
    fn the_order_of_languages_is_a_setting() {
        let vary = vary(&["Accept-Language"]);
        let (first, second) = (
            fields(&[("Accept-Language", "en, de")]),
            fields(&[("Accept-Language", "de, en")]),
        );
        let matches = |language_order_matters| {
            let policy = VaryPolicy {
                language_order_matters,
            };
            vary.matches(FieldList::from(&first), FieldList::from(&second), policy)
        };
        assert!(matches(false));
        assert!(!matches(true));
    }
}
