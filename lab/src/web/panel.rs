//! Parts of pages: figures with their names, charts with their tables.

use maud::{Markup, html};

use super::table::{Cell, Format, Table};
use super::views::{Section, Tile};
use crate::report::{bounded, visible, wide};
use crate::time::iso;

/// Returns figures with their names.
pub(super) fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        @if !tiles.is_empty() {
            dl .tiles {
                @for tile in tiles {
                    div .tile { dt { (tile.label) } dd { (tile.value) } dd .detail { (tile.detail) } }
                }
            }
        }
    }
}

/// Returns a chart with its table; `csv` returns the target of a table by its name, if the site has one.
pub(super) fn panel(section: &Section, csv: Option<&dyn Fn(&str) -> String>) -> Markup {
    let table = &section.table;
    let is_cut = table.rows.len() > ROWS_MAX;
    let class = if section.is_wide {
        "panel full"
    } else {
        "panel"
    };
    let name = format!("Table: {}", section.title);
    html! {
        section class=(class) {
            h2 { (visible(&section.title)) }
            @if let Some(chart) = &section.chart { (chart.markup(&section.title)) }
            @if !section.note.is_empty() { p .key { (section.note) } }
            details open[section.is_open] {
                summary { "Table" }
                (wide(&name, &rows(&section.title, table)))
                @if let Some(csv) = csv {
                    p .key { a href=(csv(table.id)) { "CSV" } @if is_cut {
                        ", with all " (table.rows.len()) " rows; the first " (ROWS_MAX) " are here" } }
                } @else if is_cut {
                    p .key { "The first " (ROWS_MAX) " of " (table.rows.len()) " rows are here." }
                }
            }
        }
    }
}

fn rows(title: &str, table: &Table) -> Markup {
    let class = |unit: Format| matches!(unit, Format::Text | Format::Time).then_some("text");
    html! {
        table {
            caption { (visible(title)) }
            thead { tr { @for column in &table.columns { th scope="col" class=[class(column.unit)] { (column.label) } } } }
            tbody {
                @for row in table.rows.iter().take(ROWS_MAX) {
                    tr {
                        @for (n, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
                            @if n == 0 { th scope="row" class=[class(column.unit)] { (value(cell, column.unit)) } }
                            @else { td class=[class(column.unit)] { (value(cell, column.unit)) } }
                        }
                    }
                }
            }
        }
        @if table.rows.is_empty() { p .key { "No rows." } }
    }
}

fn value(cell: &Cell, unit: Format) -> Markup {
    let text = cell.display(unit);
    let text = bounded(&text, CELL_MOST);
    match cell {
        Cell::Link(_, target) => html! { a href=(target) { (text) } },
        Cell::Time(unix_s) => html! { time datetime=(iso(*unix_s)) { (text) } },
        _ => html! { (text) },
    }
}

/// Rows of a table on a page; CSV and JSON have all.
const ROWS_MAX: usize = 300;
/// Characters of cells.
const CELL_MOST: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_many_rows_and_long_texts_have_limits() {
        let mut table = Table::new("t", &[("a", "A", Format::Text)]);
        for _ in 0..ROWS_MAX + 1 {
            table.push(vec![Cell::Text("x".repeat(10_000))]);
        }
        let found = rows("title", &table).into_string();
        assert_eq!(found.matches("<th scope=\"row\"").count(), ROWS_MAX);
        assert!(
            found.len() < ROWS_MAX * (CELL_MOST + 100),
            "{}",
            found.len()
        );
    }
}
