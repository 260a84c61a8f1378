//! The pages: which path has which view, and what is shown if the store is empty or cannot be read.

use std::sync::Arc;
use std::time::Duration;

use store::Store;

use super::choices::Kept;

use super::http::{Events, HTML, Handler, Request, Response, Route, Worker};
use super::params::Params;
use super::site::Site;
use super::views::{Context, Page};
use super::{assets, data, events, layout};
use crate::time::now_s;

/// All pages of a site.
pub(super) struct Pages {
    site: Site,
    choices: Arc<Kept>,
}

/// Form of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Page,
    Csv,
    Json,
}

impl Pages {
    pub(super) fn new(site: Site) -> Self {
        Self {
            site,
            choices: Arc::default(),
        }
    }
}

impl Handler for Pages {
    fn route(&self, request: &Request) -> Route {
        if request.path == "events" {
            return Route::Stream;
        }
        if let Some(file) = assets::find(&request.path) {
            return Route::Now(file);
        }
        match target(&request.path) {
            Some(_) => Route::Thread,
            None => Route::Now(layout::missing()),
        }
    }

    fn worker(&self) -> Worker {
        let mut worker = Reader {
            site: self.site.clone(),
            choices: Arc::clone(&self.choices),
            store: None,
        };
        Box::new(move |request| worker.answer(request))
    }

    fn events(&self) -> Events {
        events::events(&self.site)
    }

    fn period(&self) -> Duration {
        events::period(&self.site)
    }
}

/// Returns the view and the form of a path.
fn target(path: &str) -> Option<(Page, Form)> {
    let (name, form) = match path.rsplit_once('.') {
        None => (path, Form::Page),
        Some((name, "csv")) => (name, Form::Csv),
        Some((name, "json")) => (name, Form::Json),
        Some(_) => return None,
    };
    let name = match (name, form) {
        ("", Form::Page) => Page::Overview.path(),
        (name, _) => name,
    };
    Page::ALL
        .into_iter()
        .find(|page| page.path() == name)
        .map(|page| (page, form))
}

/// The state of one thread.
struct Reader {
    site: Site,
    choices: Arc<Kept>,
    store: Option<Box<dyn Store>>,
}

impl Reader {
    fn answer(&mut self, request: &Request) -> Response {
        let (page, form) = target(&request.path).unwrap_or((Page::Overview, Form::Page));
        let params = match Params::parse(&request.query, now_s()) {
            Ok(params) => params,
            Err(reason) => {
                return match form {
                    Form::Json => data::error(400, &reason),
                    Form::Csv => Response::line(400, &reason),
                    Form::Page => layout::refused(page, &reason),
                };
            }
        };
        let made = self.view(page, form, &params);
        made.unwrap_or_else(|reason| {
            // Opened again by the next request: the file may have been replaced, or the server started.
            self.store = None;
            match form {
                Form::Json => data::error(503, &reason),
                Form::Csv => Response::line(503, &reason),
                Form::Page => layout::failed(page, &params, &self.site.source.name(), &reason),
            }
        })
    }

    fn view(&mut self, page: Page, form: Form, params: &Params) -> Result<Response, String> {
        if self.store.is_none() {
            self.store = Some(self.site.source.open()?);
        }
        let store = self.store.as_deref().ok_or("The store is not open.")?;
        let name = self.site.source.name();
        let choices = self.choices.read(store);
        let Some(choices) = choices.map_err(|error| error.to_string())? else {
            return Ok(match form {
                Form::Json => data::json(page, params, &name, None),
                Form::Csv => Response::line(404, "The store is empty."),
                Form::Page => layout::empty(page, params, &name),
            });
        };
        let context = Context { params, store };
        let view = page.view(&context).map_err(|error| error.to_string())?;
        Ok(match form {
            Form::Json => data::json(page, params, &name, Some(&view)),
            Form::Csv => data::csv(page, params, &view),
            Form::Page => {
                let site = layout::Frame {
                    page,
                    params,
                    store: &name,
                    choices: &choices,
                };
                Response::made(200, HTML, layout::page(&site, &view))
            }
        })
    }
}
