//! Tables: the figures of a view, from which page, CSV and JSON are made.

use serde_json::{Map, Number, Value};

use crate::map::cell as csv_text;
use crate::report::visible;
use crate::time;

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// A text, of others too.
    Text(String),
    /// A text with a link to another page.
    Link(String, String),
    /// A number of things.
    Count(u64),
    /// Milliseconds, a share in percent, or another number with decimals.
    Real(f64),
    /// A time, Unix seconds.
    Time(u64),
    /// Unknown.
    Empty,
}

impl Cell {
    /// Returns a number, or an empty cell.
    pub(super) fn real(value: Option<f64>) -> Self {
        value
            .filter(|value| value.is_finite())
            .map_or(Self::Empty, Self::Real)
    }

    /// Returns a share in percent; empty if the whole is 0.
    pub(super) fn share(part: u64, whole: u64) -> Self {
        Self::real((whole > 0).then(|| part as f64 * 100.0 / whole as f64))
    }

    /// Text for readers.
    pub(super) fn display(&self, unit: Format) -> String {
        match self {
            Self::Text(text) | Self::Link(text, _) => visible(text).into_owned(),
            Self::Count(count) if unit == Format::Bytes => bytes(*count),
            Self::Count(count) => grouped(*count),
            Self::Real(value) => real(*value),
            Self::Time(unix_s) => time::readable(*unix_s),
            Self::Empty => "\u{2013}".to_owned(),
        }
    }

    /// Text of CSV.
    fn csv(&self) -> String {
        match self {
            Self::Text(text) | Self::Link(text, _) => csv_text(text),
            Self::Count(count) => count.to_string(),
            Self::Real(value) => format!("{value:.3}"),
            Self::Time(unix_s) => time::iso(*unix_s),
            Self::Empty => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) | Self::Link(text, _) => Value::String(text.clone()),
            Self::Count(count) => Value::from(*count),
            Self::Real(value) => {
                let rounded = (value * 1000.0).round() / 1000.0;
                Number::from_f64(rounded).map_or(Value::Null, Value::Number)
            }
            Self::Time(unix_s) => Value::String(time::iso(*unix_s)),
            Self::Empty => Value::Null,
        }
    }
}

/// Format of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Text, aligned to the left.
    Text,
    /// Time, aligned to the left.
    Time,
    /// Number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Percent.
    Percent,
    /// Number with decimals.
    Real,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Name in CSV and JSON, with its unit.
    pub(super) key: &'static str,
    /// Head for readers.
    pub(super) label: &'static str,
    pub(super) unit: Format,
}

/// A table with its columns; each row has as many cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// Name in URLs and JSON.
    pub(super) id: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table without rows.
    pub(super) fn new(id: &'static str, columns: &[(&'static str, &'static str, Format)]) -> Self {
        let column = |(key, label, unit): &(&'static str, &'static str, Format)| Column {
            key,
            label,
            unit: *unit,
        };
        Self {
            id,
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.id);
        self.rows.push(row);
    }

    /// Returns the table as RFC 4180 has it, with a line of heads. All texts are quoted, and none is a formula.
    pub(super) fn csv(&self) -> String {
        let heads: Vec<&str> = self.columns.iter().map(|column| column.key).collect();
        let mut out = heads.join(",");
        out.push_str("\r\n");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::csv).collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }

    /// Returns an array with an object for each row.
    pub(super) fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            let members = cells.map(|(column, cell)| (column.key.to_owned(), cell.json()));
            Value::Object(members.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }
}

/// Writes a number with thin spaces between thousands: `12 345`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// Writes a number with three digits at least, without false precision.
pub(super) fn real(value: f64) -> String {
    let size = value.abs();
    match size {
        // No minus before a nought.
        _ if size < 0.005 => "0.00".to_owned(),
        _ if size < 9.995 => format!("{value:.2}"),
        _ if size < 99.95 => format!("{value:.1}"),
        _ if size < 1e15 => {
            let whole = grouped(size.round() as u64);
            let sign = if value < 0.0 { "\u{2212}" } else { "" };
            format!("{sign}{whole}")
        }
        _ => format!("{value:.2e}"),
    }
}

/// Writes a number of bytes in binary units: `1.50 MiB`.
pub(super) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = count as f64;
    let mut unit = "B";
    for next in units {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    match unit {
        "B" => format!("{count} B"),
        unit => format!("{} {unit}", real(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let all = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]);
        assert_eq!([-0.0049, -0.005, 0.0].map(real), ["0.00", "-0.01", "0.00"]);
        let all = [0.123, 9.994, 9.996, 99.94, 99.96, 1234.5, -1234.5].map(real);
        let wanted = [
            "0.12",
            "9.99",
            "10.0",
            "99.9",
            "100",
            "1\u{2009}235",
            "\u{2212}1\u{2009}235",
        ];
        assert_eq!(all, wanted);
        let all = [0, 1023, 1024, 1_572_864, u64::MAX].map(bytes);
        assert_eq!(all, ["0 B", "1023 B", "1.00 KiB", "1.50 MiB", "16.0 EiB"]);
    }

    #[test]
    fn tables_are_csv_and_json() {
        let mut table = Table::new(
            "t",
            &[
                ("name", "Name", Format::Text),
                ("n", "N", Format::Count),
                ("ms", "ms", Format::Ms),
                ("at", "At", Format::Time),
            ],
        );
        table.push(vec![
            Cell::Text("=1\"<".to_owned()),
            Cell::Count(3),
            Cell::Real(1.23456),
            Cell::Time(1_767_225_600),
        ]);
        table.push(vec![
            Cell::Text(String::new()),
            Cell::Count(0),
            Cell::real(Some(f64::NAN)),
            Cell::Empty,
        ]);
        let wanted = "name,n,ms,at\r\n\"'=1\"\"<\",3,1.235,2026-01-01T00:00:00Z\r\n\"\",0,,\r\n";
        assert_eq!(table.csv(), wanted);
        let json = table.json();
        assert_eq!(json[0]["ms"], 1.235);
        assert_eq!(json[0]["name"], "=1\"<");
        assert_eq!(json[1]["ms"], Value::Null);
    }
}
