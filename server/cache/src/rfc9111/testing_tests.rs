//! Fields of tests, from and to text.

use engines::http::Fields;

use super::FieldList;

/// Makes fields of names and values.
pub(super) fn fields(list: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

/// Returns fields as lines.
pub(super) fn shown(fields: &Fields) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = FieldList::from(fields).iter();
    fields
        .map(|(_, name, value)| format!("{}: {}", text(name), text(value)))
        .collect()
}
