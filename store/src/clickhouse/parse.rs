//! Rows of a response, as TabSeparated.

use super::text::unescape;
use crate::error::Error;

/// Error for an unreadable part of a response.
pub(super) fn unreadable(part: &str) -> Error {
    Error::Other(format!(
        "ClickHouse: the {part} of a response is unreadable"
    ))
}

/// Fields of a row, in their order.
pub(super) struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split('\t'))
    }

    /// Reads the next field as a text.
    pub(super) fn text(&mut self) -> Result<String, Error> {
        let field = self.0.next().ok_or_else(|| unreadable("text"))?;
        Ok(unescape(field))
    }

    /// Reads the next field as a number.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let field = self.0.next().ok_or_else(|| unreadable("number"))?;
        field.parse().map_err(|_| unreadable("number"))
    }

    /// Reads the next field as a number of 32 bits.
    pub(super) fn narrow(&mut self) -> Result<u32, Error> {
        u32::try_from(self.number()?).map_err(|_| unreadable("number"))
    }

    /// Reads the next field as a number or NULL.
    pub(super) fn optional(&mut self) -> Result<Option<u64>, Error> {
        let mut rest = self.0.clone();
        if rest.next() == Some("\\N") {
            self.0 = rest;
            return Ok(None);
        }
        self.number().map(Some)
    }

    /// Reads the next field as a number of 32 bits or NULL.
    pub(super) fn known(&mut self) -> Result<Option<u32>, Error> {
        let number = self.optional()?.map(u32::try_from);
        number.transpose().map_err(|_| unreadable("number"))
    }

    /// Checks that there is no further field.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self.0.next() {
            None => Ok(()),
            Some(_) => Err(unreadable("number of fields")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_fields_of_their_query() {
        let mut fields = Fields::of("a\\tb\t18446744073709551615");
        assert_eq!(fields.text(), Ok("a\tb".to_owned()));
        assert_eq!(fields.number(), Ok(u64::MAX));
        assert_eq!(fields.end(), Ok(()));
        for line in ["", "-1", "1.5", "18446744073709551616", "<html>"] {
            assert!(Fields::of(line).number().is_err(), "{line}");
        }
        let mut known = Fields::of("\\N\t4294967295\t\\N\t18446744073709551615\t4294967296");
        assert_eq!(
            (known.known(), known.known()),
            (Ok(None), Ok(Some(u32::MAX)))
        );
        assert_eq!(
            (known.optional(), known.optional()),
            (Ok(None), Ok(Some(u64::MAX)))
        );
        assert!(known.known().is_err() && known.known().is_err());
        let mut long = Fields::of("1\t2");
        assert_eq!(long.number(), Ok(1));
        assert!(long.end().is_err());
    }
}
