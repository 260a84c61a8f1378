//! Pages over a store of SQLite: figures, forms, empty and broken stores, hostile texts.

#[path = "../../tests/dashboard/rows.rs"]
mod rows;

mod experiments;
mod figures;
mod hostile;
mod live;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use firstbyte_tests::TempDir;
use store::{Connection, OpenSample, Retention, Sqlite, Store};

use super::http::{Handler, Request, Response, Route};
use super::pages::Pages;
use super::site::{Site, Source};
use super::views::Page;
use crate::time::now_s;

/// A file of SQLite.
struct File {
    path: PathBuf,
    name: &'static str,
}

impl Source for File {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        let store = Sqlite::open_to_read(&self.path).map_err(|error| error.to_string())?;
        Ok(Box::new(store))
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }
}

/// A dashboard without sockets.
struct Dashboard {
    pages: Pages,
    dir: TempDir,
}

impl Dashboard {
    fn of(rows: &[Connection], open: &[OpenSample]) -> Self {
        Self::named("example", rows, open)
    }

    fn named(name: &'static str, rows: &[Connection], open: &[OpenSample]) -> Self {
        let dir = TempDir::new();
        let path = dir.path().join("lab.db");
        let mut store = Sqlite::open(&path).expect("a new store").store;
        store.commit(rows, open).expect("it has room");
        let (retention, limit) = (Retention::default(), Duration::from_secs(60));
        store
            .maintain(now_s(), &retention, limit)
            .expect("it has room");
        let source = Arc::new(File { path, name });
        let pages = Pages::new(Site { source, live: None });
        Self { pages, dir }
    }

    fn get(&self, target: &str) -> Response {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            path: path.to_owned(),
            query: query.to_owned(),
        };
        match self.pages.route(&request) {
            Route::Now(response) => response,
            Route::Thread => self.pages.worker()(&request),
            Route::Stream => panic!("a stream"),
        }
    }

    /// Body of a page that must have a status.
    #[track_caller]
    fn body(&self, target: &str, status: u16) -> String {
        let response = self.get(target);
        let body = text(&response);
        assert_eq!(response.status, status, "{target}: {body}");
        body
    }

    #[track_caller]
    fn json(&self, target: &str) -> serde_json::Value {
        serde_json::from_str(&self.body(target, 200)).expect("it is JSON")
    }
}

fn text(response: &Response) -> String {
    let bytes = match &response.body {
        super::http::Body::Static(bytes) => bytes.to_vec(),
        super::http::Body::Made(bytes) => bytes.clone(),
    };
    String::from_utf8(bytes).expect("text")
}

/// Paths of all pages about a period.
fn paths() -> impl Iterator<Item = &'static str> {
    let all = Page::ALL.into_iter().filter(|page| page.has_period());
    all.map(Page::path)
}

/// A small store with rows of the last day.
fn example() -> Dashboard {
    let now = now_s();
    Dashboard::of(&rows::rows(1, 2000, now, 86_400), &rows::open(2, now, 7200))
}
