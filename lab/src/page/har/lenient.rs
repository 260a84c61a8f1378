//! Reads JSON of unknown programs into expected types. A wrong type is a fault with its path, never an error of the
//! parser. Unknown members are skipped and not kept.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{BYTES_MAX, Fault, TIME_MS_MAX, date, quoted};

/// A member that should be a number, a text or a boolean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// It is not there, or null.
    #[default]
    Missing,
    Bool(bool),
    Number(f64),
    Text(String),
    /// A list or an object.
    Other(&'static str),
}

impl Value {
    /// A text; numbers are texts to programs that are careless of types.
    pub(super) fn text(self, path: &str) -> Result<Option<String>, Fault> {
        match self {
            Self::Missing => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            Self::Number(number) => Ok(Some(number.to_string())),
            other => Err(Fault::new(
                path,
                format!("it is {}, not a text", other.name()),
            )),
        }
    }

    /// A text that is not blank; programs write empty texts for unknown ones.
    pub(super) fn known_text(self, path: &str) -> Result<Option<String>, Fault> {
        Ok(self.text(path)?.filter(|text| !is_blank(text)))
    }

    /// Returns the text of a custom member; other programs may use its name for another type.
    pub(super) fn any_text(self) -> Option<String> {
        self.known_text("").ok().flatten()
    }

    /// A date, ms since 1970 in UTC. An empty text and the zero date of Go and .NET are missing.
    pub(super) fn date(self, path: &str) -> Result<Option<f64>, Fault> {
        let Some(text) = self.known_text(path)? else {
            return Ok(None);
        };
        if text.trim().starts_with(ZERO_DATE) {
            return Ok(None);
        }
        let date = date::parse(&text);
        let why = || format!("{} is not a date from 1970 to 2200", quoted(&text));
        date.map(Some).ok_or_else(|| Fault::new(path, why()))
    }

    /// A number, also one that is written as a text; an empty text is missing.
    pub(super) fn number(&self, path: &str) -> Result<Option<f64>, Fault> {
        let number = match self {
            Self::Missing => return Ok(None),
            Self::Text(text) if is_blank(text) => return Ok(None),
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Bool(_) | Self::Other(_) => None,
        };
        match number.filter(|number: &f64| number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => Err(Fault::new(
                path,
                format!("it is {}, not a number", self.name()),
            )),
        }
    }

    /// Returns a time in milliseconds; -1 is a phase that does not apply. Other values above -1 and below 0 are
    /// differences of clocks.
    pub(super) fn time_ms(&self, path: &str) -> Result<Option<f64>, Fault> {
        let Some(ms) = self.number(path)? else {
            return Ok(None);
        };
        match ms {
            _ if ms == NOT_APPLICABLE => Ok(None),
            _ if ms < NOT_APPLICABLE => Err(Fault::new(path, format!("{ms} is not a valid time"))),
            _ if ms > TIME_MS_MAX => {
                let why = format!("{ms} ms are more than a week");
                Err(Fault::new(path, why))
            }
            _ => Ok(Some(ms.max(0.0))),
        }
    }

    /// Returns a size in bytes. Sizes below 0 are unknown: -1 by the standard, others from Chrome for bytes that it has
    /// not counted.
    pub(super) fn bytes(&self, path: &str) -> Result<Option<u64>, Fault> {
        match self.number(path)? {
            Some(bytes) if bytes > BYTES_MAX as f64 => {
                Err(Fault::new(path, format!("{bytes} bytes are too many")))
            }
            Some(bytes) if bytes >= 0.0 => Ok(Some(bytes.round() as u64)),
            _ => Ok(None),
        }
    }

    /// Returns whether the value means true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Bool(yes) => *yes,
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !matches!(text.as_str(), "" | "0" | "false" | "none"),
            Self::Missing | Self::Other(_) => false,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Missing => "missing".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quoted(text),
            Self::Other(name) => (*name).to_owned(),
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A member that should be an object.
#[derive(Debug, Default)]
pub(super) enum Object<T> {
    /// It is not there, or null.
    #[default]
    Missing,
    /// It is something else.
    Wrong(String),
    /// It is one.
    Is(T),
}

impl<T> Object<T> {
    /// Returns the object, if present.
    pub(super) fn optional(self, path: &str) -> Result<Option<T>, Fault> {
        match self {
            Self::Missing => Ok(None),
            Self::Wrong(name) => Err(Fault::new(path, format!("it is {name}, not an object"))),
            Self::Is(object) => Ok(Some(object)),
        }
    }

    /// The object, which has to be there.
    pub(super) fn required(self, path: &str) -> Result<T, Fault> {
        let object = self.optional(path)?;
        object.ok_or_else(|| Fault::new(path, "it is missing"))
    }
}

/// An element of a list. It is converted at once, so a list takes no more memory than the converted elements.
pub(super) trait Element: Sized {
    /// Its type in the file.
    type Raw: DeserializeOwned;
    /// Most elements in a list.
    const MOST: usize;
    /// Name of the elements in faults.
    const NAME: &'static str;

    /// Makes one of it.
    fn new(raw: Self::Raw) -> Result<Self, Fault>;
}

/// A member that should be a list.
#[derive(Debug, Default)]
pub(super) enum List<T> {
    /// It is not there, or null.
    #[default]
    Missing,
    /// Its first fault.
    Wrong(Fault),
    /// It is one.
    Is(Vec<T>),
}

impl<T> List<T> {
    /// Returns the elements; none if the list is missing.
    pub(super) fn elements(self, path: &str) -> Result<Vec<T>, Fault> {
        match self {
            Self::Missing => Ok(Vec::new()),
            Self::Wrong(fault) => Err(fault.within(path)),
            Self::Is(elements) => Ok(elements),
        }
    }
}

/// A value read from a text or an object; a default for any other type.
pub(super) trait TextOrObject: Default {
    /// The object in the file.
    type Raw: DeserializeOwned;

    fn of_text(text: Value) -> Self;
    fn of_object(raw: Self::Raw) -> Self;
}

/// A member that may be a text or an object.
#[derive(Debug, Default)]
pub(super) struct Either<T>(pub(super) T);

/// Reads any value into one of the types above.
struct Reader<T>(PhantomData<T>);

/// A value that is read from any type of JSON.
trait OfJson: Sized {
    fn scalar(value: Value) -> Self;
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error>;
    fn object<'de, A: MapAccess<'de>>(object: A) -> Result<Self, A::Error>;
}

impl<'de, T: OfJson> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::scalar(Value::Number(value as f64)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::scalar(Value::Number(value as f64)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::scalar(Value::Number(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::scalar(Value::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<T, E> {
        Ok(T::scalar(Value::Text(value)))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::scalar(Value::Missing))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::object(object)
    }
}

fn pass_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn pass_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl OfJson for Value {
    fn scalar(value: Value) -> Self {
        value
    }

    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        pass_list(list).map(|()| Self::Other(LIST))
    }

    fn object<'de, A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        pass_object(object).map(|()| Self::Other(OBJECT))
    }
}

impl<T: DeserializeOwned> OfJson for Object<T> {
    fn scalar(value: Value) -> Self {
        match value {
            Value::Missing => Self::Missing,
            Value::Text(text) if is_blank(&text) => Self::Missing,
            value => Self::Wrong(value.name()),
        }
    }

    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        pass_list(list).map(|()| Self::Wrong(LIST.to_owned()))
    }

    fn object<'de, A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(serde::de::value::MapAccessDeserializer::new(object)).map(Self::Is)
    }
}

impl<T: Element> OfJson for List<T> {
    fn scalar(value: Value) -> Self {
        match value {
            Value::Missing => Self::Missing,
            Value::Text(text) if is_blank(&text) => Self::Missing,
            value => Self::Wrong(Fault::new(
                "",
                format!("it is {}, not a list", value.name()),
            )),
        }
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut elements = Vec::new();
        while let Some(raw) = list.next_element::<T::Raw>()? {
            let place = elements.len();
            let new = match place < T::MOST {
                true => T::new(raw).map_err(|fault| fault.within(&format!("[{place}]"))),
                false => Err(Fault::new(
                    "",
                    format!("there are more than {} {}", T::MOST, T::NAME),
                )),
            };
            match new {
                Ok(element) => elements.push(element),
                // The rest is skipped: only the first fault is reported.
                Err(fault) => return pass_list(list).map(|()| Self::Wrong(fault)),
            }
        }
        Ok(Self::Is(elements))
    }

    fn object<'de, A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let why = format!("it is {OBJECT}, not a list");
        pass_object(object).map(|()| Self::Wrong(Fault::new("", why)))
    }
}

impl<T: TextOrObject> OfJson for Either<T> {
    fn scalar(value: Value) -> Self {
        Self(T::of_text(value))
    }

    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        pass_list(list).map(|()| Self::default())
    }

    fn object<'de, A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let raw = T::Raw::deserialize(serde::de::value::MapAccessDeserializer::new(object))?;
        Ok(Self(T::of_object(raw)))
    }
}

impl<'de, T: TextOrObject> Deserialize<'de> for Either<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

impl<'de, T: Element> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

/// A time that does not apply, as HAR writes it.
const NOT_APPLICABLE: f64 = -1.0;
const LIST: &str = "a list";
const OBJECT: &str = "an object";
/// The date without a value of Go and .NET.
const ZERO_DATE: &str = "0001-01-01T00:00:00";
